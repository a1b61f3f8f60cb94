// Where kernels are below what their card can do: FLOP/s over FLOP per byte of VRAM, both in powers.

class RooflineView {
  constructor(profile, pick) {
    Object.assign(this, { profile, pick, place: document.getElementById("roofline"), made: false });
  }
  open() {
    if (this.made) return;
    this.made = true;
    const { profile } = this;
    const cards = profile.devices.filter((device) => device.summary && device.summary.kernels.length > 0);
    if (cards.length === 0) {
      this.place.replaceChildren(element("h2", {}, "Roofline"),
        element("p", {}, "No kernel of this profile was counted, so nothing says what it computed and moved. Counters are recorded by"),
        element("pre", {}, "orrery-prof record --counters -o FILE -- COMMAND"));
      return;
    }
    this.place.replaceChildren(...cards.flatMap((device) => this.card(device)));
  }
  card(device) {
    const { kernels } = device.summary;
    const { bounds } = device;
    const title = `Card ${device.device}${device.sku === undefined ? "" : `, ${this.profile.texts[device.sku]}`}`;
    const parts = [element("h2", {}, named(title))];
    if (bounds.vram && bounds.f32) parts.push(this.chart(device, kernels.filter((kernel) => kernel.flops > 0)));
    else parts.push(element("p", { className: "quiet" }, "The profile does not say what this card can do at most."));
    const [bandwidth, latency, link, launch, pause] = [0, 1, 2, 3, 4];
    parts.push(tableOf(
      ["kernel", "runs", "time", "FLOP/byte", "GFLOP/s", "attainable", "GB/s", "of attainable", "limit", "waits: memory", "latency", "links", "starts", "pauses"],
      kernels.map((kernel) => [
        cell(element("button", { onclick: () => this.pick(this.longest(device, kernel.name)) }, named(short(visible(kernel.name), 60))), "name"),
        cell(grouped(kernel.runs)), cell(duration(kernel.time)), cell(kernel.flops > 0 ? kernel.intensity.toPrecision(3) : "–"),
        cell(kernel.gflops.toFixed(1)), cell(kernel.attainable > 0 ? kernel.attainable.toFixed(1) : "–"), cell(kernel.gbPerS.toFixed(1)),
        cell(kernel.share > 0 ? percent(kernel.share) : "–"), cell(kernel.share === 0 ? "–" : kernel.byMemory ? "VRAM" : "compute"),
        ...[bandwidth, latency, link, launch, pause].map((stall) => cell(percent(kernel.stalls[stall])))]),
      "Waits are shares of the time in which vector cores had the kernel."));
    return parts;
  }
  longest(device, name) {
    const { profile } = this;
    let found = -1;
    for (const { track, first, count } of profile.rows) {
      if (!track.isWork || track.device !== device.device || track.process !== device.process) continue;
      for (let i = first; i < first + count; i++) {
        if (profile.kind[i] !== Kind.kernel || profile.texts[profile.name[i]] !== visible(name)) continue;
        if (found < 0 || profile.end[i] - profile.begin[i] > profile.end[found] - profile.begin[found]) found = i;
      }
    }
    return found;
  }
  chart(device, kernels) {
    const { vram, f16, f32, f64 } = device.bounds; // GB/s, GFLOP/s
    const width = 860, height = 430, left = 66, right = 20, top = 16, bottom = 44;
    const power = Math.log10;
    const ridge = f32 / vram;
    const xs = [ridge / 100, ridge * 30, ...kernels.map((kernel) => kernel.intensity)].filter((x) => x > 0);
    const ys = [f16 || f32, f64 / 100 || f32 / 300, ...kernels.map((kernel) => kernel.gflops)].filter((y) => y > 0);
    const [x0, x1] = [Math.floor(power(Math.min(...xs))), Math.ceil(power(Math.max(...xs)))];
    const [y0, y1] = [Math.floor(power(Math.min(...ys))), Math.ceil(power(Math.max(...ys) * 1.2))];
    const x = (intensity) => left + ((power(intensity) - x0) / (x1 - x0)) * (width - left - right);
    const y = (gflops) => height - bottom - ((power(gflops) - y0) / (y1 - y0)) * (height - top - bottom);
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `Roofline: VRAM gives ${vram} GB/s, the cores ${f32.toFixed(0)} GFLOP/s of f32. The table below has the same.` });
    const add = (tag, attributes, text) => svg.append(svgElement(tag, attributes, text));
    const line = (xa, ya, xb, yb, name) => add("line", { x1: xa, y1: ya, x2: xb, y2: yb, class: name });
    for (let n = x0; n <= x1; n++) {
      line(x(10 ** n), top, x(10 ** n), height - bottom, "grid");
      add("text", { x: x(10 ** n), y: height - bottom + 18, "text-anchor": "middle" }, powerText(n));
    }
    for (let n = y0; n <= y1; n++) {
      line(left, y(10 ** n), width - right, y(10 ** n), "grid");
      add("text", { x: left - 8, y: y(10 ** n) + 4, "text-anchor": "end" }, powerText(n));
    }
    add("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "FLOP per byte of VRAM");
    add("text", { x: 14, y: height / 2, transform: `rotate(-90 14 ${height / 2})`, "text-anchor": "middle" }, "GFLOP/s");
    const peaks = [["f16", f16], ["f32", f32], ["f64", f64]].filter(([, peak]) => peak > 0);
    const highest = Math.max(...peaks.map(([, peak]) => peak));
    const from = Math.max(10 ** x0, 10 ** y0 / vram);
    line(x(from), y(from * vram), x(highest / vram), y(highest), "roof");
    add("text", { x: x(ridge) - 8, y: y(f32) - 8, "text-anchor": "end", class: "label" }, `VRAM ${vram} GB/s`);
    for (const [name, peak] of peaks) {
      line(x(peak / vram), y(peak), width - right, y(peak), "roof");
      add("text", { x: width - right - 4, y: y(peak) - 6, "text-anchor": "end", class: "label" }, `${name} ${peak.toFixed(0)} GFLOP/s`);
    }
    const longest = Math.max(...kernels.map((kernel) => kernel.time), 1);
    for (const kernel of kernels) {
      const at = { x: x(kernel.intensity), y: y(Math.max(kernel.gflops, 10 ** y0)) };
      const point = svgElement("circle", { cx: at.x, cy: at.y, r: 5 + 9 * Math.sqrt(kernel.time / longest), class: "point" });
      point.append(svgElement("title", {}, `${visible(kernel.name)}: ${kernel.gflops.toFixed(1)} GFLOP/s, ${percent(kernel.share)} of what is attainable`));
      point.addEventListener("click", () => this.pick(this.longest(device, kernel.name)));
      svg.append(point);
      const end = at.x > width - 170;
      add("text", { x: at.x + (end ? -14 : 14), y: at.y + 16, "text-anchor": end ? "end" : "start", class: "label" }, short(visible(kernel.name), 28));
    }
    return svg;
  }
}
function powerText(n) { return n >= 0 && n < 6 ? grouped(10 ** n) : n < 0 && n > -4 ? `${10 ** n}` : `10^${n}`; }
