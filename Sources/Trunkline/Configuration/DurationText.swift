/// `500ms`, `45s`, `1m`, `4h`.
func durationValue(_ text: String) -> Duration? {
  let digits = text.prefix { ("0"..."9").contains($0) }
  let unit = text.dropFirst(digits.count)
  guard !digits.isEmpty, digits.count <= (unit == "ms" ? 12 : 9), let number = Int64(digits) else { return nil }
  switch unit {
  case "ms": return .milliseconds(number)
  case "s": return .seconds(number)
  case "m": return .seconds(number * 60)
  case "h": return .seconds(number * 3600)
  case "d": return .seconds(number * 86_400)
  default: return nil
  }
}

/// The shortest form that `durationValue` reads back.
func durationText(_ value: Duration) -> String {
  let milliseconds = value.milliseconds
  if milliseconds % 1000 != 0 || milliseconds == 0 { return "\(milliseconds)ms" }
  let seconds = milliseconds / 1000
  if seconds % 3600 == 0 { return "\(seconds / 3600)h" }
  return seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s"
}
