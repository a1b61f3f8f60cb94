// How busy cards were, why they were not, and what is missing.

function tableOf(heads, rows, caption) {
  return element("div", { className: "wide" }, element("table", {}, caption ? element("caption", {}, caption) : null,
    element("thead", {}, element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", className: rows[0]?.[i].classList.contains("text") ? "text" : "" }, text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells)))));
}
function cell(content, className = "") { return element("td", { className }, content); }
function factsOf(facts) {
  return element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

class Summary {
  constructor(profile, pick) {
    Object.assign(this, { profile, pick, place: document.getElementById("summary"), made: false });
  }
  open() {
    if (this.made) return;
    this.made = true;
    this.place.replaceChildren(element("h2", {}, "Cards"), this.cards(), ...this.gaps(),
      element("h2", {}, "Processes"), this.processes());
  }
  get devices() { return this.profile.devices.filter((device) => device.summary); }
  titleOf(device) {
    const { profile } = this;
    const sku = device.sku === undefined ? "" : `, ${profile.texts[device.sku]}`;
    const process = profile.processes.length > 1 ? `, process ${processTitle(profile.processes[device.process])}` : "";
    return `Card ${device.device}${sku}${process}`;
  }
  cards() {
    if (this.devices.length === 0) return element("p", { className: "quiet" }, "No card did anything for the processes of this profile.");
    return element("div", { className: "cards" }, ...this.devices.map((device) => this.card(device)));
  }
  card(device) {
    const { span, vector, copy, overlap, used, idle, preemptions } = device.summary;
    const meter = (label, time, of, what) => element("div", { className: "meter", title: `${duration(time)} of ${duration(of)}: ${what}` },
      element("span", {}, label), bar(of > 0 ? time / of : 0), element("span", {}, percent(of > 0 ? time / of : 0)));
    const meters = [meter("vector cores", vector, span, "a kernel ran"), meter("copy engines", copy, span, "a copy or fill ran")];
    if (device.cores > 0) meters.push(meter("cores in use", used, span * device.cores, "of all vector cores together"));
    if (copy > 0) meters.push(meter("copies overlapped", overlap, copy, "of the time of copies, with kernels"));
    const facts = [["first to last work", duration(span)], ["kernels", `${grouped(device.vector.count)}, at most ${device.vector.most} at once`],
      ["copies", `${grouped(device.copy.count)}, at most ${device.copy.most} at once`]];
    for (const [why, time] of idle) facts.push([`idle: ${why}`, duration(time)]);
    if (preemptions > 0) facts.push(["preemptions", grouped(preemptions)]);
    if (device.memoryPeak > 0) facts.push(["memory, at most", `${sizeText(device.memoryPeak)}${device.vram ? ` of ${sizeText(device.vram)}` : ""}`]);
    for (const link of device.links || [])
      facts.push([`link ${link.port}`, `${link.peer < 0 ? "to a card that this process does not use" : `to card ${link.peer}`}, ${link.gbit} Gbit/s`]);
    return element("div", { className: "card" }, element("h3", {}, named(this.titleOf(device))), ...meters, factsOf(facts));
  }
  gaps() {
    const rows = this.devices.flatMap((device) => device.summary.gaps.map((gap) => ({ device, gap })));
    if (rows.length === 0) return [];
    rows.sort((a, b) => b.gap.time - a.gap.time);
    return [element("h2", {}, "Where a card had nothing to do"),
      tableOf(["at", "card", "for", "why", "ended by"], rows.slice(0, 20).map(({ device, gap }) => [
        cell(element("button", { onclick: () => this.pick(gap.slice), disabled: gap.slice === undefined }, duration(gap.begin))),
        cell(`${device.device}`), cell(duration(gap.time)), cell(named(gap.who ? `${gap.why}: ${visible(gap.who)}` : gap.why), "text"),
        cell(gap.slice === undefined ? "" : named(short(this.profile.texts[this.profile.name[gap.slice]], 60)), "text")]))];
  }
  processes() {
    const { profile } = this;
    const rows = profile.processes.map((process, number) => {
      const own = profile.rows.filter((row) => row.track.process === number);
      const count = (work) => own.reduce((sum, row) => sum + (row.track.isWork === work && !row.track.beside ? row.count : 0), 0);
      const wrong = [];
      if (process.lost > 0) wrong.push(`${grouped(process.lost)} records were lost: record with a larger --limit.`);
      for (const [device, count] of process.lostWork) wrong.push(`${count > 0 ? grouped(count) + " kernels, copies or fills" : "Some work"} of card ${device} told too late: not here.`);
      for (const [device, count] of process.lostSamples) wrong.push(`${grouped(count)} samples of card ${device} were lost.`);
      if (process.cutAt) wrong.push(`Its part was spoilt from byte ${grouped(process.cutAt)} on: what it recorded behind that is not here.`);
      if (!process.ended) wrong.push("It did not end by exit(), or had not when this was saved: what it did last is not here.");
      return [cell(processTitle(process)), cell(named(profile.texts[process.command]), "text"),
        cell(grouped(count(false))), cell(grouped(count(true))), cell(wrong.join(" "), "text bad")];
    });
    return tableOf(["process", "command", "calls and ranges", "work", "what is missing"], rows);
  }
}
