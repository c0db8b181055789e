// What is asked of a page. The functions run in the page, so they use nothing from outside of them.

// What goes beyond the width of the page, and what scrolls sideways though it is neither code nor a table.
export function overflows(excluded) {
  const wide = document.documentElement.clientWidth;
  const name = (element) => {
    const classes = [...element.classList].map((one) => `.${one}`).join("");
    const id = element.id ? `#${element.id}` : "";
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName}${id}${classes}> “${text}”`;
  };
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isOwnBox = (element) => element.matches("pre, code, table, svg") || element.querySelector(":scope > table");
  const problems = [];
  if (document.documentElement.scrollWidth > wide) {
    problems.push(`the page is ${document.documentElement.scrollWidth} wide`);
  }
  // The contents of a box that scrolls are reached by scrolling it, and are not asked.
  const visit = (element) => {
    const style = getComputedStyle(element);
    if (element.matches(excluded.join())) return;
    if (style.display === "none" || style.visibility === "hidden") return;
    const box = element.getBoundingClientRect();
    const isShown = box.width > 1 && box.height > 1;
    if (isShown && box.right > wide + 1 && box.left < wide) {
      problems.push(`${name(element)} ends at ${Math.round(box.right)}`);
      return;
    }
    if (scrolls(element)) {
      if (isOwnBox(element)) return;
      if (element.scrollWidth > element.clientWidth + 1) problems.push(`${name(element)} scrolls sideways`);
    }
    for (const child of element.children) visit(child);
  };
  for (const child of document.body.children) visit(child);
  return problems.slice(0, 5);
}

// The pictures that are not there.
export async function brokenPictures() {
  const pictures = [...document.images];
  for (const picture of pictures) picture.loading = "eager";
  const isOurs = ({ src }) => new URL(src, location.href).origin === location.origin;
  const loaded = pictures.filter(isOurs).map((picture) => picture.decode().then(() => null, () => picture.src));
  return (await Promise.all(loaded)).filter((broken) => broken);
}

// Where the page leads.
export function links() {
  // rustdoc copies documentation of other crates, with its links.
  const parts = "#blanket-implementations-list";
  const ours = [...document.querySelectorAll("a[href]")].filter((link) => !link.closest(parts));
  return [...new Set(ours.map((link) => link.href))];
}

// Text that cannot be read well, by the rule of axe. `excluded` are selectors.
export async function contrast(excluded) {
  const { violations } = await axe.run(
    { include: [["body"]], exclude: excluded.map((selector) => [selector]) },
    { runOnly: ["color-contrast"], resultTypes: ["violations"], elementRef: false },
  );
  const nodes = violations.flatMap(({ nodes }) => nodes);
  return nodes.map(({ target, any }) => {
    const { fgColor, bgColor, contrastRatio } = any[0]?.data ?? {};
    return { at: target.flat().join(" "), colours: `${fgColor} on ${bgColor}`, ratio: contrastRatio };
  });
}

// Of a picture that is a document of its own: text that leaves it, meets other text, or cannot be read.
export function drawing() {
  const problems = [];
  const root = document.documentElement;
  const { width, height } = root.viewBox.baseVal;
  const parts = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  // What is seen of a colour on another one.
  const mixed = (colour, ground, share) =>
    parts(colour).map((part, index) => part * share + parts(ground)[index] * (1 - share));
  const luminance = (colour) => {
    const linear = colour.map((part) => (part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ratio = (text, ground) => {
    const seen = mixed(fill(text), ground, Number(getComputedStyle(text).opacity));
    const [low, high] = [luminance(seen), luminance(parts(ground))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const fill = (element) => getComputedStyle(element).fill;
  // What was drawn before it, and is behind its middle.
  const behind = (text, { x, y, width, height }) => {
    const middle = new DOMPoint(x + width / 2, y + height / 2);
    const shapes = [...document.querySelectorAll("rect, path")].filter((shape) => {
      const isBefore = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      return isBefore && fill(shape) !== "none" && shape.isPointInFill(middle);
    });
    return shapes.length ? fill(shapes.at(-1)) : null;
  };
  if (!root.querySelector("title")?.textContent.trim()) problems.push("it has no title");
  const boxes = [...document.querySelectorAll("text")].map((text) => {
    const [box, words] = [text.getBBox(), text.textContent.trim()];
    if (box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height) {
      problems.push(`“${words}” leaves it`);
    }
    const ground = behind(text, box);
    if (!ground) problems.push(`“${words}” has no ground`);
    else if (ratio(text, ground) < 4.5) {
      problems.push(`“${words}” is ${fill(text)} on ${ground}: ${ratio(text, ground).toFixed(2)}`);
    }
    return { words, box };
  });
  boxes.forEach(({ words, box: one }, index) => {
    for (const { words: others, box: other } of boxes.slice(index + 1)) {
      // Lines of text may touch, for a box has room above and below its letters.
      const across = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
      const down = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
      if (across > 1 && down > 4) problems.push(`“${words}” meets “${others}”`);
    }
  });
  return problems;
}
