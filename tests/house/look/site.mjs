// The site as files: which pages there are, which anchors each has, and a server for them on this machine.

import { createServer } from "node:http";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".ico": "image/x-icon",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

export class Site {
  #anchors = new Map();

  constructor(root) {
    this.root = root;
  }

  // The pages below a folder, as paths of the site.
  pages(folder) {
    const found = [];
    const visit = (path) => {
      for (const entry of readdirSync(join(this.root, path), { withFileTypes: true })) {
        const inside = join(path, entry.name);
        if (entry.isDirectory()) visit(inside);
        else if (entry.name.endsWith(".html")) found.push(inside);
      }
    };
    if (existsSync(join(this.root, folder))) visit(folder);
    return found.sort();
  }

  // The file that stands for a path: itself, or the page of a folder. A folder without a page stands for itself,
  // for links that lead to one of the repository's folders.
  resolve(path) {
    const file = normalize(join(this.root, decodeURIComponent(path)));
    if (!file.startsWith(this.root) || !existsSync(file)) return null;
    if (!statSync(file).isDirectory()) return file;
    const page = join(file, "index.html");
    return existsSync(page) ? page : file;
  }

  // Why a link leads nowhere; `null` if it leads somewhere.
  broken(url) {
    const file = this.resolve(url.pathname);
    if (!file) return "no such file";
    const anchor = url.hash.slice(1);
    if (!anchor || extname(file) !== ".html") return null;
    // The lines of a source, which rustdoc marks by their first and last number.
    const names = /^\d+-\d+$/.test(anchor) ? anchor.split("-") : [anchor];
    // rustdoc writes some anchors as they are in a link, and everybody else as they are read.
    const anchors = this.#anchorsOf(file);
    const missing = names.filter((name) => !anchors.has(name) && !anchors.has(decodeURIComponent(name)));
    return missing.length ? "no such anchor" : null;
  }

  #anchorsOf(file) {
    let anchors = this.#anchors.get(file);
    if (!anchors) {
      const found = readFileSync(file, "utf8").matchAll(/\s(?:id|name)=(?:"([^"]*)"|'([^']*)'|([^\s>]+))/g);
      anchors = new Set([...found].map((match) => unescaped(match[1] ?? match[2] ?? match[3])));
      this.#anchors.set(file, anchors);
    }
    return anchors;
  }

  // Serves the files, and returns the address.
  async serve() {
    const server = createServer((request, response) => {
      const path = new URL(request.url, "http://localhost").pathname;
      // Every browser asks for it, whether a page names it or not.
      if (path === "/favicon.ico") return response.writeHead(204).end();
      const file = this.resolve(path);
      if (!file || statSync(file).isDirectory()) return response.writeHead(404).end();
      const type = TYPES[extname(file)] ?? "text/plain";
      // What several pages have is asked for once.
      const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "max-age=3600" };
      response.writeHead(200, headers).end(readFileSync(file));
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    this.close = () => server.close();
    return `http://127.0.0.1:${server.address().port}`;
  }
}

function unescaped(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}
