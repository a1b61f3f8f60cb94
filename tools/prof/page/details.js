// What is selected, as text: a slice, or a range of time.

const directions = ["", "host to device", "device to host", "within the device", "peer to device", "device to peer", "other"];
const outcomes = ["done", "preempted: another part follows", "failed"];
const waitedFor = ["", "a stream", "the host", "another process"];

class Details {
  constructor(profile, view, painter, select) {
    Object.assign(this, { profile, view, painter, select, place: document.getElementById("details") });
  }

  show() {
    const { view } = this;
    if (view.selected >= 0) this.showSlice(view.selected);
    else if (view.range) this.showRange(view.range);
    else this.showNothing();
  }
  showNothing() {
    const { profile } = this;
    const tell = profile.size === 0 ? ["Nothing was recorded."] : [`${grouped(profile.firstWork)} calls, ranges and markers above; ${grouped(profile.works)} pieces of cards' work below.`,
      "Click one for what is known of it. Drag moves, the wheel zooms, Shift and drag sums up a range of time."];
    this.place.replaceChildren(...tell.map((text) => element("p", { className: "quiet" }, text)));
  }

  showSlice(i) {
    const { profile } = this;
    const { track } = rowOfSlice(profile, i);
    const work = track.isWork;
    const process = profile.processes[track.process];
    const perUnit = track.onCard ? 1 : 1000;
    const kind = profile.kind[i];
    const facts = [];
    const add = (name, value) => { if (value !== "" && value !== null && value !== undefined) facts.push([name, value]); };
    add("what", kindNames[kind]);
    const moment = kind === Kind.marker || kind === Kind.signal || kind === Kind.streamMark;
    if (!moment) add("duration", duration((profile.end[i] - profile.begin[i]) * perUnit));
    add("begin", duration(profile.begin[i] * perUnit));
    add(track.onCard ? "by the card's clock" : "by the host's clock", this.exact(i));
    add("process", processTitle(process));
    if (work) this.addWorkFacts(i - profile.firstWork, track, kind, add);
    else if (track.beside) {
      if (track.onCard) add("card", `${track.device}`);
      add("of", named(profile.texts[track.title]));
      if (kind === Kind.signal && profile.status[i] === 2) add("outcome", element("span", { className: "bad" }, outcomes[2]));
    } else {
      add("thread", `${track.thread}`);
      if (track.domain !== undefined) add("domain", named(profile.texts[track.domain]));
      if (kind === Kind.call && profile.status[i] !== 0)
        add("result", element("span", { className: "bad" }, `error ${profile.status[i]}`));
    }
    if (profile.correlation[i] !== 0) add("correlation", `${profile.correlation[i]}`);
    if (profile.external[i] !== 0) add("number of the program's", `${profile.external[i]}`);
    const parts = [element("h2", {}, named(profile.texts[profile.name[i]] || "(no name)")), this.list(facts)];
    parts.push(...this.related(i));
    if (work) parts.push(...this.counters(i - profile.firstWork));
    this.place.replaceChildren(...parts);
  }
  addWorkFacts(w, track, kind, add) {
    const { profile } = this;
    const status = profile.status[w + profile.firstWork];
    add("card", `${track.device}`);
    add("stream", named(profile.texts[track.name] || `${track.stream}`));
    add("packet", `${profile.index[w]}`);
    add("outcome", status === 2 ? element("span", { className: "bad" }, outcomes[2]) : outcomes[status] || `${status}`);
    if (profile.used[w] > 0) add("engine time", duration(profile.used[w]));
    const time = profile.end[w + profile.firstWork] - profile.begin[w + profile.firstWork];
    if (kind === Kind.copy) add("direction", directions[profile.direction[w]]);
    if (profile.bytes[w] > 0) {
      add("bytes", `${grouped(profile.bytes[w])} (${sizeText(profile.bytes[w])})`);
      if (time > 0) add("rate", rate((profile.bytes[w] / time) * 1e12, "B/s"));
    }
    if (kind === Kind.wait) {
      add("waited for", waitedFor[profile.from[w]]);
      if (profile.fromName[w] > 0) add("semaphore", named(profile.texts[profile.fromName[w]]));
    }
    if (profile.hostAt[w] > 0)
      add("begin by the host's clock", `${duration((profile.hostAt[w] - 1) * 1000)} ± ${duration(profile.hostError[w] * 1000)}`);
    add("submitted", `${duration(profile.submitted[w] * 1000)} host time, thread ${profile.thread[w]}`);
  }
  // With the clock's own origin.
  exact(i) {
    const { meta, firstWork, begin } = this.profile;
    const work = i >= firstWork;
    const digits = (BigInt(work ? meta.modelBegin : meta.hostBegin) + BigInt(begin[i])).toString();
    return `${digits.replace(/\B(?=(\d{3})+$)/g, "\u202f")} ${work ? "ps" : "ns"}`;
  }
  list(facts) {
    return element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }
  linkTo(slice) {
    const { profile } = this;
    const time = (profile.end[slice] - profile.begin[slice]) * (slice >= profile.firstWork ? 1 : 1000);
    return element("button", { onclick: () => this.select(slice, { reveal: true }) },
      named(short(profile.texts[profile.name[slice]], 60)), `  ${duration(time)}`);
  }
  related(i) {
    const { profile } = this;
    const parts = [];
    const links = (title, slices) => {
      if (slices.length === 0) return;
      parts.push(element("h3", {}, title), element("div", { className: "links" }, ...slices.slice(0, 12).map((one) => this.linkTo(one))));
      if (slices.length > 12) parts.push(element("p", { className: "quiet" }, `and ${grouped(slices.length - 12)} more`));
    };
    if (i < profile.firstWork) {
      if (profile.kind[i] === Kind.call) {
        links("Work that it submitted", this.painter.arrows.worksOf(i));
        links("Work that it waited for, the last of a stream", this.painter.arrows.foundBy(i));
      }
      return parts;
    }
    const call = this.painter.arrows.callOf(i);
    if (call >= 0) links("Call that submitted it", [call]);
    if (i >= profile.firstBeside) {
      const shown = profile.shows[i - profile.firstBeside];
      if (shown > 0) links(profile.kind[i] === Kind.signal ? "The wait that it ended" : "The copy itself", [shown - 1]);
      return parts;
    }
    const cause = profile.cause[i - profile.firstWork];
    if (cause > 0) links("Waited for", [cause - 1]);
    const finder = this.painter.arrows.finderOf(i);
    if (finder >= 0) links("Call that waited for it", [finder]);
    return parts;
  }
  counters(w) {
    const { counters } = this.profile;
    if (!counters || counters.places[w] < 0) return [];
    const place = counters.places[w];
    const facts = [], zeros = [];
    for (const name of counters.names.slice(0, counters.known[place])) {
      const value = counters.values[name][place];
      if (value === 0) zeros.push(name);
      else facts.push([name, name.endsWith("_ps") ? duration(value) : grouped(value)]);
    }
    const unknown = counters.names.slice(counters.known[place]);
    if (zeros.length > 0) facts.push(["0", zeros.join(", ")]);
    if (unknown.length > 0) facts.push(["not known", unknown.join(", ")]);
    return [element("h3", {}, "Counters"), this.list(facts)];
  }

  showRange({ pane, begin, end }) {
    const { profile, view } = this;
    const sums = view.sums(pane, begin, end);
    view.range.sums = sums;
    const facts = [["from", duration(begin * pane.psPerUnit)], ["to", duration(end * pane.psPerUnit)], ["slices", grouped(sums.count)]];
    for (const engine of sums.engines) facts.push([engine.label, `${engine.average.toFixed(2)} at once`]);
    const rows = sums.names.slice(0, 25).map((sum) => element("tr", {},
      element("td", { className: "name" }, named(short(profile.texts[sum.name], 60))),
      element("td", {}, grouped(sum.count)), element("td", {}, duration(sum.time * pane.psPerUnit))));
    this.place.replaceChildren(
      element("h2", {}, `${duration((end - begin) * pane.psPerUnit)} of ${pane.title.toLowerCase()}`),
      this.list(facts),
      element("table", {}, element("thead", {}, element("tr", {}, ...["name", "count", "time"].map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, ...rows)),
      sums.names.length > 25 ? element("p", { className: "quiet" }, `and ${grouped(sums.names.length - 25)} more names`) : "",
      element("div", { className: "links" }, element("button", { onclick: () => { pane.show(begin, end - begin); this.painter.invalidate(); } }, "Zoom to it")));
  }
}
