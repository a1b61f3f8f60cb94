// What tools/prof/page_data.cc has put into the page, as typed arrays.

const Kind = { call: 0, range: 1, openRange: 2, marker: 3, other: 4, copy: 5, fill: 6, kernel: 7, wait: 8, step: 9,
  linkCopy: 10, signal: 11, streamMark: 12 };
const kindNames = ["call", "range", "range that has not ended", "marker", "work", "copy", "fill", "kernel", "wait", "step within a call", "copy over a link", "signal of a semaphore", "mark in a stream"];

// Names are anybody's: what has no shape of its own, or would turn its neighbours around, is shown as what it is.
function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// The numbers of a column, LEB128.
function numbersOf(bytes, count, into) {
  let at = 0;
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++];
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
    }
    into[i] = value;
  }
  return into;
}

function unzigzag(values) {
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    values[i] = v % 2 === 0 ? v / 2 : -(v + 1) / 2;
  }
  return values;
}

// Differences become values, anew in each row.
function summedByRow(differences, rows, offset) {
  const values = unzigzag(differences);
  for (const row of rows) {
    let sum = 0;
    for (let i = row.first - offset; i < row.first + row.count - offset; i++) {
      sum += values[i];
      values[i] = sum;
    }
  }
  return values;
}

// sums[i]: of the first i.
function prefixSums(count, value) {
  const sums = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) sums[i + 1] = sums[i] + value(i);
  return sums;
}

function decodeProfile(metaText, columnsText) {
  const meta = JSON.parse(metaText);
  const all = bytesOfBase64(columnsText.trim());
  const columns = {};
  let at = 0;
  for (const [name, size] of meta.columns) {
    columns[name] = all.subarray(at, at + size);
    at += size;
  }
  const n = meta.slices;
  const works = meta.firstBeside - meta.firstWork;
  const texts = meta.texts.map(visible);

  const tracks = meta.tracks.map((track, number) => ({
    ...track, number, rows: [], onCard: track.device !== undefined,
    // What shows the same once more, by another order (steps and links), and moments of streams.
    beside: track.title !== undefined, isWork: track.device !== undefined && track.title === undefined }));
  const rows = [];
  let first = 0;
  meta.rows.forEach(([track, count]) => {
    const row = { track: tracks[track], first, count, number: rows.length };
    rows.push(row);
    tracks[track].rows.push(row);
    first += count;
  });
  const workRows = rows.filter((row) => row.track.isWork);

  const begin = summedByRow(numbersOf(columns.begin, n, new Float64Array(n)), rows, 0);
  const end = numbersOf(columns.time, n, new Float64Array(n));
  const sums = prefixSums(n, (i) => end[i]); // of durations
  for (let i = 0; i < n; i++) end[i] += begin[i];
  const kind = numbersOf(columns.kind, n, new Uint8Array(n));
  const firstWork = meta.firstWork;
  const ofWork = (name, Type) => numbersOf(columns[name], works, new Type(works));
  const ofKind = (one, other) =>
    prefixSums(works, (i) => {
      const k = kind[firstWork + i];
      return k === one || k === other ? end[firstWork + i] - begin[firstWork + i] : 0;
    });

  return {
    meta, texts, tracks, rows, firstWork, size: n, works,
    processes: meta.processes,
    devices: meta.devices,
    begin, end, kind, sums,
    name: numbersOf(columns.name, n, new Uint32Array(n)),
    status: unzigzag(numbersOf(columns.status, n, new Float64Array(n))),
    correlation: summedByRow(numbersOf(columns.correlation, n, new Float64Array(n)), rows, 0),
    external: numbersOf(columns.external, n, new Float64Array(n)),
    // Of work, by its number less firstWork.
    index: ofWork("index", Float64Array),
    submitted: summedByRow(ofWork("submitted", Float64Array), workRows, firstWork),
    used: ofWork("used", Float64Array),
    thread: ofWork("thread", Uint32Array),
    bytes: ofWork("bytes", Float64Array),
    direction: ofWork("direction", Uint8Array),
    from: ofWork("from", Uint32Array),
    fromName: ofWork("fromName", Uint32Array),
    hostAt: ofWork("hostAt", Float64Array),
    hostError: ofWork("hostError", Float64Array),
    cause: ofWork("cause", Uint32Array), // a slice and 1, of waits
    foundBy: ofWork("foundBy", Float64Array), // the correlation of the call that waited for it
    firstBeside: meta.firstBeside,
    shows: numbersOf(columns.shows, n - meta.firstBeside, new Uint32Array(n - meta.firstBeside)), // a slice and 1
    counters: decodeCounters(meta, columns, works),
    samples: decodeSamples(meta, columns),
    memory: decodeMemory(meta, columns),
    kernelSums: ofKind(Kind.kernel, Kind.kernel),
    copySums: ofKind(Kind.copy, Kind.fill),
  };
}

// What was counted: a column for each counter, and for each work its place in them or -1.
function decodeCounters(meta, columns, works) {
  if (meta.counted === 0) return null;
  const places = new Int32Array(works).fill(-1);
  let work = 0;
  unzigzag(numbersOf(columns.counted, meta.counted, new Float64Array(meta.counted))).forEach((step, place) => {
    work += step;
    places[work] = place;
  });
  const values = {};
  for (const name of meta.counterNames)
    values[name] = numbersOf(columns[`counter:${name}`], meta.counted, new Float64Array(meta.counted));
  // Of each the first so many names are known.
  const known = numbersOf(columns.counterKnown, meta.counted, new Float64Array(meta.counted));
  return { names: meta.counterNames, places, values, known };
}

// Series, one behind the other in a column, each of differences.
function seriesOf(column, counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const all = numbersOf(column, total, new Float64Array(total));
  let first = 0;
  const series = counts.map((count) => ({ first, count: (first += count, count) }));
  summedByRow(all, series, 0);
  return series.map((one) => all.subarray(one.first, one.first + one.count));
}

function decodeSamples(meta, columns) {
  const times = seriesOf(columns.sampleTime, meta.samples.map((set) => set.count));
  const values = seriesOf(columns.sampleValue, meta.samples.flatMap((set) => set.counters.map(() => set.count)));
  let next = 0;
  return meta.samples.map((set, i) => ({
    ...set, times: times[i], counters: set.counters.map((counter) => ({ ...counter, values: values[next++] })) }));
}

function decodeMemory(meta, columns) {
  const counts = meta.memory.map((one) => one.count);
  const times = seriesOf(columns.memoryTime, counts), bytes = seriesOf(columns.memoryBytes, counts);
  return meta.memory.map((one, i) => ({ ...one, times: times[i], bytes: bytes[i] }));
}

// The first of values[from, to) that is above the limit, or with `orEqual` not below it.
function firstAbove(values, from, to, limit, orEqual) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] > limit || (orEqual && values[middle] === limit)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function rowOfSlice(profile, slice) {
  let from = 0, to = profile.rows.length - 1;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    if (profile.rows[middle].first <= slice) from = middle;
    else to = middle - 1;
  }
  return profile.rows[from];
}

// Which call submitted which work, made when first asked for.
class Submissions {
  constructor(profile) {
    this.profile = profile;
    const calls = new Map(); // process -> correlation -> call
    const { kind, correlation, firstWork, size } = profile;
    const workLists = new Map(); // call -> works
    for (const row of profile.rows) {
      if (row.track.onCard) continue;
      let own = calls.get(row.track.process);
      if (!own) calls.set(row.track.process, (own = new Map()));
      for (let i = row.first; i < row.first + row.count; i++) {
        if (kind[i] === Kind.call && correlation[i] !== 0) own.set(correlation[i], i);
      }
    }
    this.calls = new Int32Array(size - firstWork).fill(-1);
    this.finders = new Int32Array(profile.works).fill(-1);
    this.foundLists = new Map(); // call -> works
    for (const row of profile.rows) {
      const own = row.track.onCard && calls.get(row.track.process);
      if (!own) continue;
      for (let i = row.first; i < row.first + row.count; i++) {
        const finder = row.track.isWork && profile.foundBy[i - firstWork] > 0 ? own.get(profile.foundBy[i - firstWork]) : undefined;
        if (finder !== undefined) {
          this.finders[i - firstWork] = finder;
          if (!this.foundLists.has(finder)) this.foundLists.set(finder, []);
          this.foundLists.get(finder).push(i);
        }
        const call = own.get(correlation[i]);
        if (call === undefined || correlation[i] === 0) continue;
        this.calls[i - firstWork] = call;
        if (!row.track.isWork) continue;
        const list = workLists.get(call);
        if (list) list.push(i);
        else workLists.set(call, [i]);
      }
    }
    this.workLists = workLists;
  }
  callOf(work) { return work < this.profile.firstWork ? -1 : this.calls[work - this.profile.firstWork]; }
  // Who waited for a stream and found it done, of the last work of that; and the other way round.
  finderOf(work) { return work < this.profile.firstWork || work >= this.profile.firstBeside ? -1 : this.finders[work - this.profile.firstWork]; }
  foundBy(call) { return this.foundLists.get(call) || []; }
  worksOf(call) { return this.workLists.get(call) || []; }
}
