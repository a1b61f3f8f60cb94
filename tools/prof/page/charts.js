// The summary.

class Summary {
  constructor(profile, pick) {
    Object.assign(this, { profile, pick, place: document.getElementById("summary"), made: false });
  }
  open() {
    if (this.made) return;
    this.made = true;
    this.place.replaceChildren(element("h2", {}, "Cards"), this.cards(), element("h2", {}, "Processes"), this.processes());
  }
  cards() {
    const { profile } = this;
    const cards = profile.devices.map((device) => this.card(device)).filter((card) => card !== null);
    if (cards.length === 0) return element("p", { className: "quiet" }, "No card did anything for the processes of this profile.");
    return element("div", { className: "cards" }, ...cards);
  }
  card(device) {
    const { profile } = this;
    const rows = profile.rows.filter((row) => row.track.isWork && row.count > 0 &&
      row.track.process === device.process && row.track.device === device.device);
    if (rows.length === 0) return null;
    const begin = Math.min(...rows.map((row) => profile.begin[row.first]));
    const end = Math.max(...rows.map((row) => profile.end[row.first + row.count - 1]));
    const span = Math.max(end - begin, 1);
    const meter = (label, { busy, count }) => element("div", { className: "meter", title: `${grouped(count)} pieces of work, ${duration(busy)}` },
      element("span", {}, label), bar(busy / span), element("span", {}, percent(busy / span)));
    const facts = [["first to last work", duration(span)], ["kernels", `${grouped(device.vector.count)}, at most ${device.vector.most} at once`],
      ["copies", `${grouped(device.copy.count)}, at most ${device.copy.most} at once`]];
    if (device.memoryPeak > 0) facts.push(["memory, at most", sizeText(device.memoryPeak)]);
    for (const link of device.links || [])
      facts.push([`link ${link.port}`, link.peer < 0 ? "to a card that this process does not use" : `to card ${link.peer}, ${link.gbit} Gbit/s`]);
    const title = `Card ${device.device}${device.sku === undefined ? "" : `, ${profile.texts[device.sku]}`}`;
    return element("div", { className: "card" },
      element("h3", {}, named(profile.processes.length > 1 ? `${title}, process ${profile.processes[device.process].pid}` : title)),
      meter("vector cores", device.vector), meter("copy engines", device.copy),
      element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
  }
  processes() {
    const { profile } = this;
    const rows = profile.processes.map((process, number) => {
      const own = profile.rows.filter((row) => row.track.process === number);
      const count = (work) => own.reduce((sum, row) => sum + (row.track.isWork === work ? row.count : 0), 0);
      const wrong = [];
      if (process.lost > 0) wrong.push(`${grouped(process.lost)} records were lost: record with a larger --limit.`);
      for (const device of process.lostWork) wrong.push(`Some work of card ${device} was told too late, and is not here.`);
      if (!process.ended) wrong.push("It did not end by exit(): a call in which it was is not here.");
      return element("tr", {}, element("td", {}, `${process.pid}`), element("td", { className: "text" }, named(profile.texts[process.command])),
        element("td", {}, grouped(count(false))), element("td", {}, grouped(count(true))), element("td", { className: "text bad" }, wrong.join(" ")));
    });
    const heads = ["process", "command", "calls and ranges", "work", "what is missing"];
    return element("div", { className: "wide" }, element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows)));
  }
}
