// Spans of time.

/** Milliseconds as minutes and seconds: 1:05, 1:00:05. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** Milliseconds in the two largest units: 45 s, 3 min 20 s, 2 h 5 min, 12 d 4 h. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
  if (seconds === 0) return "0 s";
  const [name, size] = units[first], rest = units[first + 1];
  const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
  return `${Math.floor(seconds / size)} ${name}${more ? ` ${more} ${rest[0]}` : ""}`;
}
