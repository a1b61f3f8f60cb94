// Numbers and names for people, and elements of the page.

const groupedFormat = new Intl.NumberFormat("en", { useGrouping: true });
function grouped(n) { return groupedFormat.format(n).replaceAll(",", "\u202f"); }

const timeUnits = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];
function unitOf(ps) {
  const size = Math.abs(ps);
  return timeUnits.find(([scale]) => size >= scale) || timeUnits[timeUnits.length - 1];
}
// In the unit that suits it, three digits behind the point.
function duration(ps) {
  if (ps === 0) return "0";
  const [scale, unit] = unitOf(ps);
  return `${(ps / scale).toFixed(scale === 1 ? 0 : 3)} ${unit}`;
}
function percent(share) { return Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : "–"; }
function rate(perSecond, unit) {
  const found = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([scale]) => perSecond >= scale) || [1, ""];
  return `${(perSecond / found[0]).toPrecision(4)} ${found[1]}${unit}`;
}

// element("td", {className: "x", onclick: f}, "text", child...): texts become text, never markup.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria-") || key === "role" || key === "scope") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
// A name: it turns nothing around it, whatever it is written in.
function named(text) { return element("bdi", { textContent: text, title: text.length > 40 ? text.slice(0, 1000) : "" }); }
function short(text, length) { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }

const svgSpace = "http://www.w3.org/2000/svg";
function svgElement(tag, attributes, text) {
  const made = document.createElementNS(svgSpace, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Machines number their processes alike.
function processTitle(process) {
  return process.machine > 0 ? `${process.pid} of machine ${process.machine}` : `${process.pid}`;
}
