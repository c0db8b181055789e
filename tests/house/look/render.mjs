// Makes pages of the documents that are read at GitHub and are no part of the book: as GitHub shows them, each
// beside where its source would be, so that relative links lead where they lead there.
//
//   node render.mjs REPOSITORY SITE DOCUMENT ...

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, normalize, relative } from "node:path";

import GithubSlugger from "github-slugger";
import MarkdownIt from "markdown-it";

const [repository, site, ...documents] = process.argv.slice(2);
const css = createRequire(import.meta.url).resolve("github-markdown-css/github-markdown.css");

// What surrounds a document at GitHub.
const AROUND = `
body { box-sizing: border-box; max-width: 980px; margin: 0 auto; padding: 45px; }
@media (max-width: 767px) { body { padding: 15px; } }
html { background: #ffffff; }
@media (prefers-color-scheme: dark) { html { background: #0d1117; color-scheme: dark; } }
`;

// A link to a chapter of the book, or to one of these documents, leads to its page; any other to the file.
function page(from, href) {
  if (/^[a-z]+:/.test(href)) return href;
  const [path, anchor] = href.split("#");
  const meant = normalize(join(dirname(from), path));
  const isPage = meant.startsWith("docs/") || documents.includes(meant);
  const html = isPage ? path.replace(/\.md$/, ".html") : path;
  return anchor === undefined ? html : `${html}#${anchor}`;
}

function render(document) {
  const slugger = new GithubSlugger();
  const markdown = new MarkdownIt({ html: true, linkify: true });
  markdown.core.ruler.push("as_at_github", ({ tokens }) => {
    tokens.forEach((token, index) => {
      if (token.type === "heading_open") {
        const text = tokens[index + 1].children.filter(({ type }) => type === "text" || type === "code_inline");
        token.attrSet("id", slugger.slug(text.map(({ content }) => content).join("")));
      }
      for (const child of token.children ?? []) {
        if (child.type === "link_open") child.attrSet("href", page(document, child.attrGet("href")));
      }
    });
  });
  return markdown.render(readFileSync(join(repository, document), "utf8"));
}

mkdirSync(site, { recursive: true });
writeFileSync(join(site, "github.css"), readFileSync(css, "utf8") + AROUND);
for (const document of documents) {
  const file = join(site, document.replace(/\.md$/, ".html"));
  const style = relative(dirname(file), join(site, "github.css"));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document}</title>
<link rel="stylesheet" href="${style}">
</head>
<body><article class="markdown-body">
${render(document)}
</article></body>
</html>
`,
  );
}
