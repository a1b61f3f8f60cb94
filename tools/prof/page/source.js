// Where vector cores were in kernels when they were looked at, by line.

const stallNames = ["computing", "latency", "memory", "links", "start of an item", "barrier", "pause"];

class SourceView {
  constructor(profile) {
    Object.assign(this, { profile, place: document.getElementById("source"), kernel: null });
    document.getElementById("tab-source").hidden = profile.meta.places.length === 0;
    this.kernels = new Map(); // name -> {name, total, places}
    for (const [kernel, func, line, offset, counts] of profile.meta.places) {
      const total = counts.reduce((sum, count) => sum + count, 0);
      const own = this.kernels.get(kernel) || { name: kernel, total: 0, places: [] };
      this.kernels.set(kernel, own);
      own.total += total;
      own.places.push({ func, line, offset, counts, total });
    }
  }
  open() {
    if (this.kernel === null) {
      const first = [...this.kernels.values()].sort((a, b) => b.total - a.total)[0];
      if (first) this.show(first.name);
    }
  }
  show(name) {
    this.kernel = name;
    const { texts } = this.profile;
    const own = this.kernels.get(name);
    const kernels = [...this.kernels.values()].sort((a, b) => b.total - a.total).slice(0, 50).map((one) =>
      element("button", { "aria-pressed": String(one === own), onclick: () => this.show(one.name) }, named(short(texts[one.name], 60)), ` (${grouped(one.total)})`));
    this.place.replaceChildren(element("div", { className: "kinds", role: "group", "aria-label": "Kernel" }, ...kernels),
      this.lines(own), ...this.files(own));
  }
  stallsOf(counts, total) {
    return counts.map((count, i) => [count, stallNames[i]]).filter(([count]) => count > 0).sort((a, b) => b[0] - a[0])
      .map(([count, stall]) => `${stall} ${percent(count / total)}`).join(", ");
  }
  lines(own) {
    const { texts } = this.profile;
    const rows = [...own.places].sort((a, b) => b.total - a.total).slice(0, 200).map((place) => {
      const share = cell(percent(place.total / own.total));
      share.append(bar(place.total / own.total));
      return [cell(named(place.line ? texts[place.line] : `offset 0x${place.offset.toString(16)}`), "name"), cell(named(texts[place.func]), "text"),
        cell(grouped(place.total)), share, cell(this.stallsOf(place.counts, place.total), "text")];
    });
    return tableOf(["where", "function", "samples", "share", "at what"], rows);
  }
  // Sources that travel in the page, with the samples beside their lines.
  files(own) {
    const { texts, meta } = this.profile;
    const byFile = new Map();
    for (const place of own.places) {
      const match = /^(.*):(\d+)$/.exec(texts[place.line]);
      const source = match && meta.sources?.find((one) => visible(one.name) === match[1].slice(match[1].lastIndexOf("/") + 1));
      if (!source) continue;
      const lines = byFile.get(source) || new Map();
      byFile.set(source, lines);
      const line = lines.get(Number(match[2])) || { total: 0, counts: stallNames.map(() => 0) };
      lines.set(Number(match[2]), line);
      line.total += place.total;
      place.counts.forEach((count, i) => { line.counts[i] += count; });
    }
    return [...byFile].flatMap(([source, lines]) => {
      const rows = source.text.replace(/\n$/, "").split("\n").map((text, i) => {
        const line = lines.get(i + 1);
        const share = cell(line ? percent(line.total / own.total) : "");
        if (line) {
          share.append(bar(line.total / own.total));
          share.title = this.stallsOf(line.counts, line.total);
        }
        return [cell(`${i + 1}`), share, cell(element("pre", {}, visible(text.replaceAll("\t", "    "))), "text code")];
      });
      return [element("h2", {}, named(visible(source.name))), tableOf(["line", "samples", "source"], rows)];
    });
  }
}
