// Does in a browser what a reader does, and leaves what came of it in the page for a test to read.
"use strict";

const key = (name, target = document.activeElement ?? document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const visible = (selector) => [...document.querySelectorAll(selector)].filter((it) => it.checkVisibility());
// Without what is in an element and not shown.
const text = (element) => [...element.childNodes].map((it) =>
  it.nodeType === Node.TEXT_NODE ? it.data : it.checkVisibility?.() ? text(it) : "").join("");
const texts = (selector) => visible(selector).map((it) => text(it).trim().replace(/\s+/g, " "));
const pause = () => new Promise((done) => setTimeout(done, 50));

const steps = {
  async summary() {
    const said = { overflow: overflow(), contrast: contrast() };
    said.columns = texts(".files thead th");
    document.querySelector("#metric-functions").click();
    said.functions = texts(".files tbody .m");
    document.querySelector("#only-0").click();
    said.missedOnFirst = texts(".files tbody th");
    document.querySelector("#only-all").click();
    document.querySelector("#metric-lines").click();
    const sort = visible(".files thead button")[1];
    said.sorted = [];
    for (let click = 0; click < 3; ++click) {
      sort.click();
      said.sorted.push(texts(".files tbody th"));
    }
    document.querySelector("#order-worst").click();
    said.worst = texts(".files tbody th");
    document.querySelector("#metric-functions").click();
    said.worstByFunctions = texts(".files tbody th");
    document.querySelector("#metric-lines").click();
    document.querySelector("#order-tree").click();
    visible(".fold")[0].click();
    said.folded = texts(".files tbody th");
    document.querySelector("#folds").click();
    said.allOpen = texts(".files tbody th");
    document.querySelector("#whole").click();
    said.incomplete = texts(".files tbody th");
    said.address = location.hash;
    const walked = () => document.activeElement.closest("tr").querySelector("th a")?.textContent;
    document.activeElement.blur();
    key("j", document.body);
    said.walked = ["j", "j", "k"].map((name) => {
      key(name);
      return walked();
    });
    document.querySelector("#whole").click();
    visible(".fold")[0].click();
    // As on the next visit: each folder is as the page has it, then as it was left.
    for (const box of document.querySelectorAll(".fold input")) box.checked = box.defaultChecked;
    said.atFirst = texts(".files tbody th");
    folds(document.querySelector(".files"));
    said.remembered = texts(".files tbody th");
    return said;
  },
  async tests() {
    const said = { overflow: overflow(), contrast: contrast() };
    const heads = visible(".parts thead button");
    const sorted = (head) => {
      heads[head].click();
      return texts(".parts tbody th");
    };
    said.byName = sorted(0);
    said.byLines = sorted(3);
    return said;
  },
  // Opened with a set of tests in its address.
  async set() {
    for (let wait = 0; wait < 40 && !visible(".sets li:target .numbers a").length; ++wait) await pause();
    const set = document.querySelector(".sets li:target");
    const links = [...set.querySelectorAll(".numbers a")];
    return { position: getComputedStyle(set).position, names: links.map((it) => it.textContent),
      pages: links.map((it) => it.getAttribute("href")) };
  },
  async test() {
    const links = visible(".reached td a");
    return { overflow: overflow(), links: links.map((it) => [it.textContent, it.hash]) };
  },
  async search() {
    const said = {};
    key("/");
    const input = document.activeElement;
    said.focus = input.id;
    input.value = "SUM int";
    input.dispatchEvent(new Event("input"));
    for (let wait = 0; wait < 40 && !visible("#found a").length; ++wait) await pause();
    said.found = visible("#found a").map((it) => [it.firstChild.textContent, it.getAttribute("href")]);
    key("ArrowDown");
    said.first = document.activeElement.firstChild.textContent;
    key("Escape");
    said.closed = visible("#found").length === 0;
    input.value = "no such thing";
    input.dispatchEvent(new Event("input"));
    said.nothing = texts("#found p");
    return said;
  },
  async source() {
    for (const details of document.querySelectorAll("details")) details.open = true;
    const said = { overflow: overflow(), contrast: contrast() };
    const lines = () => visible(".source tr[id]").map((it) => Number(it.id.slice(1)));
    const stops = () => {
      const found = [];
      do {
        key("n");
        found.push(Number(document.querySelector("tr.stop").id.slice(1)));
      } while (!/^(\d+) of \1$/.test(document.querySelector(".stops output").value));
      return found;
    };
    said.stops = stops();
    said.focus = document.activeElement.closest("tr").id;
    key("p");
    said.before = document.querySelector("tr.stop").id;
    for (const only of ["0", "1", "any"]) {
      document.querySelector(`#only-${only}`).click();
      said[`missed-${only}`] = lines();
    }
    document.querySelector("#only-1").click();
    said.stopsOnSecond = stops();
    document.querySelector("#only-0").click();
    document.querySelector("#partly").click();
    said.partlyOnFirst = lines();
    const dark = () => getComputedStyle(document.body).backgroundColor;
    const before = dark();
    key("t", document.body);
    said.themes = dark() !== before;
    said.contrastOfOther = contrast();
    key("?", document.body);
    said.help = document.querySelector("#keys").open;
    return said;
  },
  // The first page of a single file, from which the others are opened.
  async single() {
    const shown = async (selector) => {
      for (let wait = 0; wait < 40 && !visible(selector).length; ++wait) await pause();
    };
    document.querySelector(".files tbody a").click();
    await shown(".source");
    const said = { title: document.title, counts: texts(".source tr[id] td.n") };
    key("n", document.body);
    said.stop = document.querySelector("tr.stop").id;
    document.querySelector("#L24 th a").click();
    await shown("tr.target");
    said.target = document.querySelector("tr.target").id;
    said.address = location.hash;
    document.querySelector("#only-1").click();
    said.chosen = location.hash;
    key("/", document.body);
    const input = document.activeElement;
    input.value = "SUM int";
    input.dispatchEvent(new Event("input"));
    await shown("#found a");
    visible("#found a")[0].click();
    await pause();
    said.found = location.hash;
    document.activeElement.blur();
    key("u", document.body);
    await shown(".files");
    said.back = texts(".files tbody th");
    said.loaded = performance.getEntriesByType("resource").map((it) => it.name).filter((name) => !/browser\.js$/.test(name));
    return said;
  },
  // All pages of a single file by the rules of axe, in light and in dark.
  async axe() {
    const script = document.createElement("script");
    await new Promise((done, failed) => {
      Object.assign(script, { src: document.axe, onload: done, onerror: failed });
      document.head.append(script);
    });
    const said = { pages: [], violations: [] };
    const pages = [...document.querySelectorAll("script[data-page]")].map((it) => it.dataset.page);
    for (const name of pages.filter((page) => page.endsWith(".html"))) {
      location.hash = `#/${name}`;
      for (let wait = 0; wait < 40 && single.page !== name; ++wait) await pause();
      for (const details of document.querySelectorAll("details")) details.open = true;
      for (let theme = 0; theme < 2; ++theme) {
        key("t", document.body);
        const { passes, violations } = await axe.run({ preload: false });
        if (passes.some(({ id }) => id === "color-contrast")) said.pages.push(single.page);
        said.violations.push(...violations.map(({ id, nodes }) =>
          `${name}: ${id} at ${nodes.slice(0, 3).map(({ target }) => target).join(", ")}`));
      }
    }
    return said;
  },
  // A report that is compared with an earlier one: its index, and a source of it.
  async earlier() {
    const said = { overflow: overflow(), contrast: contrast() };
    key("t", document.body);
    said.contrastOfOther = contrast();
    document.querySelector("#worse, #lost").click();
    said.rows = texts(".files tbody th, .source tr[id] > th");
    said.address = location.hash;
    return said;
  },
  // Opened with a choice in its address.
  async chosen() {
    return { lines: visible(".source tr[id]").map((it) => Number(it.id.slice(1))) };
  },
};

// The cells of figures that are cut by the edge of the window, and whether the page is wider than that.
function overflow() {
  const width = document.documentElement.clientWidth;
  const cut = visible(".totals td, .files td").filter((it) => it.getBoundingClientRect().right > width);
  return document.documentElement.scrollWidth - width + cut.length;
}

// The texts whose contrast with what they stand on is less than 4.5, by WCAG's formula.
function contrast() {
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = numbers(color).slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const color = getComputedStyle(it).backgroundColor;
      if ((numbers(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const low = new Set();
  for (const element of visible("body *")) {
    const hasText = [...element.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
    if (!hasText) continue;
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${element.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return [...low];
}

addEventListener("load", async () => {
  const result = document.createElement("pre");
  result.id = "result";
  try {
    result.textContent = JSON.stringify(await steps[document.currentStep]());
  } catch (error) {
    result.textContent = JSON.stringify({ error: `${error}\n${error.stack}` });
  }
  document.body.append(result);
});
