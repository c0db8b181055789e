// Opens the pages of a site in a browser, wide and narrow, light and dark, and says what is wrong with them.
//
//   node look.mjs SITE CHROMIUM FOLDER EXTENT DOCUMENT ...
//
// keeps pictures of the main pages in the folder, if its name is not empty. With the extent `all` every page is looked at
// in every look; otherwise pages of one kind share the look at their colours. The documents are those that
// render.mjs has made pages of.

import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

import { chromium } from "playwright-core";

import { brokenPictures, contrast, drawing, links, overflows } from "./checks.mjs";
import { Site } from "./site.mjs";

const [root, executablePath, shots, extent, ...documents] = process.argv.slice(2);
const rendered = documents.map((document) => document.replace(/\.md$/, ".html"));

const LOOKS = ["light", "dark"].flatMap((scheme) => [1280, 360].map((width) => ({ scheme, width })));
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Nothing is asked of other machines. To intercept each request would say the same, and have the browser keep nothing
  // from one page to the next.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

// The table of contents by itself, which mdBook shows inside of each page if there is no script.
const ADDED = ["docs/toc.html"];

// The front page of the crate's documentation.
const FRONT = "api/punctual/index.html";

// What is not ours, and why. It is asked neither for contrast nor for its width.
const EXCLUDED = [
  ["a > code", "GitHub's colours of a link that is code, and rustdoc's"],
  ["rustdoc-topbar", "rustdoc's bar on narrow screens, which cuts a long name off"],
  ["#blanket-implementations-list", "documentation of other crates, which rustdoc copies with its own colours"],
  ["pre.rust", "rustdoc's colours of code"],
  [".fn, .non-exhaustive", "rustdoc's colours of links to functions, and of its remark on what may be added"],
  [".code-header, .item-decl, .item-name, .sidebar, .main-heading, .example-wrap", "rustdoc's colours of names and kinds"],
];

// Pages whose pictures are kept if there is a folder for them.
const SHOWN = [
  "README.html",
  FRONT,
  "docs/index.html",
  "docs/architecture.html",
  "docs/book/cookbook/timers.html",
  "docs/book/series.html",
  "docs/performance.html",
  "docs/testing.html",
];

const selectors = EXCLUDED.map(([selector]) => selector);
const site = new Site(resolve(root));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const problems = new Map();
const seen = { links: new Set(), external: new Set() };

// Notes a problem. One that is there in several looks is told once, with the looks.
function report(page, { scheme, width }, what) {
  const key = `${page}: ${what}`;
  problems.set(key, [...(problems.get(key) ?? []), `${width} ${scheme}`]);
}

function checkLinks(page, found, base, look) {
  for (const link of found) {
    const url = new URL(link, base);
    if (!/^https?:$/.test(url.protocol)) continue;
    if (url.origin !== new URL(base).origin) {
      seen.external.add(url.href);
      continue;
    }
    seen.links.add(url.href);
    const broken = site.broken(url);
    if (broken) report(page, look, `the link to ${url.pathname.slice(1)}${url.hash} is broken: ${broken}`);
  }
}

// Looks at one page, in a tab that is as wide and as bright as `look` says.
async function lookAt(tab, base, page, look, { reads }) {
  const noted = [];
  const note = (what) => noted.push(what);
  const isOurs = (message) => (message.location().url || base).startsWith(base);
  const onConsole = (message) => message.type() === "error" && isOurs(message) && note(`the console: ${message.text()}`);
  const onError = (error) => note(`an error: ${error.message}`);
  const onResponse = (answer) => answer.status() >= 400 && note(`${answer.status()} for ${answer.url()}`);
  tab.on("console", onConsole).on("pageerror", onError).on("response", onResponse);
  try {
    await tab.goto(`${base}/${page}`, { waitUntil: "load" });
    if (page.endsWith(".svg")) {
      for (const what of await tab.evaluate(drawing)) note(what);
    } else {
      checkLinks(page, await tab.evaluate(links), base, look);
      for (const picture of await tab.evaluate(brokenPictures)) note(`the picture ${picture} is broken`);
      for (const what of await tab.evaluate(overflows, selectors)) note(what);
      if (reads) await read(tab, note);
    }
    if (shots && look.shows) {
      const name = page.replaceAll("/", "-").replace(/\.\w+$/, "");
      await tab.screenshot({ path: join(shots, `${name}-${look.width}-${look.scheme}.png`), fullPage: true });
    }
  } catch (error) {
    note(`${error.message.split("\n")[0]}`);
  }
  tab.off("console", onConsole).off("pageerror", onError).off("response", onResponse);
  for (const what of noted) report(page, look, what.replaceAll(`${base}/`, ""));
}

async function read(tab, note) {
  await tab.evaluate(axe);
  for (const { at, colours, ratio } of await tab.evaluate(contrast, selectors)) {
    note(`${at} is ${colours}: ${ratio}`);
  }
}

// Folders of many pages for those who change the crate. They have the style sheet of the book, and nothing of their own.
const ALIKE = ["docs/decisions/", "docs/evidence/"];

// The pages, and of each whether its colours are checked.
function pages(front) {
  const every = [...rendered, ...site.pages("docs").filter((page) => !ADDED.includes(page))];
  const folder = (page) => (extent === "all" ? undefined : ALIKE.find((prefix) => page.startsWith(prefix)));
  const chapters = every.filter((page) => !folder(page));
  const pictures = readdirSync(join(site.root, "docs/pictures")).filter((file) => file.endsWith(".svg"));
  // The colours of rustdoc's pages are the same on all of one kind, and so are those of the pages that are alike.
  const kinds = new Set();
  const look = (page) => {
    const kind = folder(page) ?? page.split("/").at(-1).split(".")[0];
    const isFirst = !kinds.has(kind);
    kinds.add(kind);
    return { page, reads: isFirst, isPlain: !isFirst };
  };
  return [
    ...[...chapters, FRONT].map((page) => ({ page, reads: true })),
    ...pictures.map((file) => ({ page: `docs/pictures/${file}` })),
    ...every.filter(folder).map(look),
    ...front.filter((page) => page !== FRONT).map(look),
  ];
}

// The pages one click from the front page, below the crate.
async function oneClickFrom(tab, base) {
  await tab.goto(`${base}/${FRONT}`, { waitUntil: "load" });
  const found = (await tab.evaluate(links)).map((link) => new URL(link).pathname.slice(1));
  return [...new Set(found)].filter((path) => path.startsWith(`${dirname(FRONT)}/`) && path.endsWith(".html"));
}

async function main() {
  const base = await site.serve();
  const browser = await chromium.launch({ executablePath, args: FLAGS });
  if (shots) mkdirSync(shots, { recursive: true });
  const first = await browser.newPage();
  const all = pages(await oneClickFrom(first, base));
  await first.close();
  const work = LOOKS.map((look) => ({ look, rest: [...all] }));
  // One window for each look, and all at once: each of them waits much of the time.
  await Promise.all(
    work.map(async ({ look, rest }) => {
      const { scheme, width } = look;
      const window = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
      const tab = await window.newPage();
      for (const { page, reads, isPlain } of rest) {
        // How wide a page is does not depend on its colours.
        if (isPlain && scheme === "dark") continue;
        await lookAt(tab, base, page, { ...look, shows: SHOWN.includes(page) }, { reads });
      }
      await window.close();
    }),
  );
  await browser.close();
  site.close();
  const counts = `${all.length} pages, ${seen.links.size} links, ${LOOKS.length} looks each`;
  const unasked = `${seen.external.size} links to other places are not followed`;
  for (const [what, looks] of [...problems].sort()) {
    console.log(looks.length === LOOKS.length ? what : `${what} (${looks.join(", ")})`);
  }
  console.log(`${counts}: ${problems.size || "nothing"} found; ${unasked}`);
  process.exitCode = problems.size ? 1 : 0;
}

await main();
