// Tables of what happened, by name; any column sorts.

const tableKinds = [
  { id: "kernels", title: "Kernels", kinds: [Kind.kernel, Kind.other] },
  { id: "copies", title: "Copies", kinds: [Kind.copy, Kind.fill] },
  { id: "waits", title: "Waits of cards", kinds: [Kind.wait] },
  { id: "calls", title: "Calls", kinds: [Kind.call] },
  { id: "steps", title: "Steps within calls", kinds: [Kind.step] },
  { id: "ranges", title: "Ranges", kinds: [Kind.range, Kind.openRange] },
];
const mostRows = 250;
// Of a row's title, "group 2, rank 3" or "graph 1, lane 0": whose steps they are.
const ownerOf = (title) => title.split(",")[0];
const preempted = 1; // outcome of a part that others follow

class Tables {
  constructor(profile, pick) {
    this.profile = profile;
    this.pick = pick; // shows a slice on the timeline
    this.place = document.getElementById("tables");
    this.shown = null;
    this.sort = { column: "total", down: true };
    this.text = "";
    this.known = new Map();
  }
  open() {
    if (this.shown === null) this.show((tableKinds.find((kind) => this.rows(kind).length > 0) || tableKinds[0]).id);
  }
  // Of one kind, added up by process, card, name, and the direction of copies.
  rows(kind) {
    if (this.known.has(kind.id)) return this.known.get(kind.id);
    const { profile } = this;
    const found = new Map();
    // Of runs that were preempted, what came before their last part.
    const parts = new Map();
    const partOf = (track, i) => `${track.number} ${profile.index[i - profile.firstWork]}`;
    const each = (use) => {
      for (const row of profile.rows) {
        for (let i = row.first; i < row.first + row.count; i++) {
          if (kind.kinds.includes(profile.kind[i])) use(row.track, i, row.track.isWork && profile.status[i] === preempted);
        }
      }
    };
    each((track, i, isPart) => {
      if (!isPart) return;
      const before = parts.get(partOf(track, i)) || { time: 0, last: i };
      before.time += profile.end[i] - profile.begin[i];
      if (profile.begin[i] > profile.begin[before.last]) before.last = i;
      parts.set(partOf(track, i), before);
    });
    const ended = new Set();
    each((track, i, isPart) => {
      if (!isPart && track.isWork) ended.add(partOf(track, i));
    });
    each((track, i, isPart) => {
      const run = track.isWork ? parts.get(partOf(track, i)) : undefined;
      // The last part stands for all; where it is not there, the last one that is.
      if (isPart && (ended.has(partOf(track, i)) || run.last !== i)) return;
      const w = i - profile.firstWork;
      const direction = kind.id === "copies" && profile.kind[i] === Kind.copy ? profile.direction[w] : 0;
      const from = kind.id === "waits" ? profile.from[w] : 0;
      // Of steps whose: graphs and groups have steps of the same names.
      const owner = kind.id === "steps" ? ownerOf(profile.texts[track.title]) : "";
      const key = `${track.process} ${track.device} ${track.domain} ${profile.name[i]} ${direction} ${from} ${owner}`;
      let sum = found.get(key);
      if (!sum) {
        const own = profile.texts[profile.name[i]];
        const more = owner || directions[direction] || waitedFor[from];
        sum = { name: (track.domain === undefined ? "" : `${profile.texts[track.domain]}: `) + (more ? `${own}, ${more}` : own),
          process: profile.processes[track.process].machine > 0 ? processTitle(profile.processes[track.process]) : profile.processes[track.process].pid, card: track.device,
          count: 0, total: 0, least: Infinity, most: 0, errors: 0, bytes: 0, longest: i };
        found.set(key, sum);
      }
      let time = (profile.end[i] - profile.begin[i]) * (track.onCard ? 1 : 1000);
      if (run) time = isPart ? run.time : run.time + time;
      sum.count++;
      sum.total += time;
      sum.least = Math.min(sum.least, time);
      if (time >= sum.most) {
        sum.most = time;
        sum.longest = i;
      }
      if (failedStatus(profile.kind[i], profile.status[i])) sum.errors++;
      if (track.isWork) sum.bytes += profile.bytes[w];
    });
    const rows = [...found.values()];
    const total = rows.reduce((sum, row) => sum + row.total, 0);
    for (const row of rows) {
      row.mean = row.total / row.count;
      row.share = total > 0 ? row.total / total : 0;
      row.rate = row.total > 0 ? (row.bytes / row.total) * 1e12 : 0;
    }
    this.known.set(kind.id, rows);
    return rows;
  }
  columns(kind, rows) {
    const one = (key) => new Set(rows.map((row) => row[key])).size <= 1;
    const columns = [["name", kind.title.toLowerCase(), (row) => row.name]];
    if (!one("process")) columns.push(["process", "process", (row) => `${row.process}`]);
    if (!one("card")) columns.push(["card", "card", (row) => `${row.card}`]);
    columns.push(["count", "count", (row) => grouped(row.count)], ["total", "total", (row) => duration(row.total)],
      ["share", "share", (row) => percent(row.share)], ["mean", "mean", (row) => duration(row.mean)],
      ["least", "shortest", (row) => duration(row.least)], ["most", "longest", (row) => duration(row.most)]);
    if (rows.some((row) => row.bytes > 0)) {
      columns.push(["bytes", "bytes", (row) => (row.bytes ? sizeText(row.bytes) : "")],
        ["rate", "rate", (row) => (row.bytes ? rate(row.rate, "B/s") : "")]);
    }
    if (rows.some((row) => row.errors > 0)) columns.push(["errors", "errors", (row) => (row.errors ? grouped(row.errors) : "")]);
    return columns;
  }
  show(id) {
    this.shown = id;
    const kind = tableKinds.find((one) => one.id === id);
    const all = this.rows(kind);
    const columns = this.columns(kind, all);
    if (!columns.some(([key]) => key === this.sort.column)) this.sort = { column: "total", down: true };
    const { column, down } = this.sort;
    const rows = all.filter((row) => row.name.toLowerCase().includes(this.text));
    rows.sort((a, b) => {
      const [x, y] = [a[column], b[column]];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return (down ? -order : order) || a.longest - b.longest;
    });
    const heads = columns.map(([key, title]) => element("th", { scope: "col", "aria-sort": key !== column ? "none" : down ? "descending" : "ascending" },
      element("button", { onclick: () => this.sortBy(key) }, title)));
    const body = rows.slice(0, mostRows).map((row) => element("tr", {}, ...columns.map(([key, , text]) => {
      if (key === "name") {
        return element("td", { className: "name" },
          element("button", { title: "Shows the longest one on the timeline", onclick: () => this.pick(row.longest) }, named(short(row.name, 300) || "(no name)")));
      }
      const cell = element("td", {}, text(row));
      if (key === "share") cell.append(bar(row.share));
      return cell;
    })));
    const kinds = tableKinds.map((one) => element("button", { "aria-pressed": String(one.id === id), onclick: () => this.show(one.id) },
      `${one.title} (${grouped(this.rows(one).length)})`));
    const caption = rows.length > mostRows ? `The first ${mostRows} of ${grouped(rows.length)}; sort, or search for a name, to see others.`
      : rows.length === 0 ? "There are none." : "";
    this.place.replaceChildren(element("div", { className: "kinds", role: "group", "aria-label": "What is in the table" }, ...kinds),
      element("div", { className: "wide" }, element("table", {}, element("caption", {}, caption),
        element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body))));
  }
  sortBy(column) {
    const same = this.sort.column === column;
    this.sort = { column, down: same ? !this.sort.down : column !== "name" };
    this.show(this.shown);
    const heads = [...this.place.querySelectorAll("th")];
    heads.find((head) => head.getAttribute("aria-sort") !== "none")?.firstChild.focus();
  }
  filter(text) {
    this.text = text;
    if (this.shown !== null) this.show(this.shown);
  }
}

function bar(share) {
  const inner = element("i");
  inner.style.width = `${Math.min(100, share * 100)}%`;
  return element("span", { className: "bar", "aria-hidden": "true" }, inner);
}
