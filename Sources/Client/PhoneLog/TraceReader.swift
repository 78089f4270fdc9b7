import TrunklineBytes

/// Reads a file of traces line by line, in memory of one line.
///
/// A problem has the line's number and states what to do. Problems are: no trace, a newer format, a line that is no log line, a
/// clock that goes back or jumps, an end that comes too early. Earlier lines have been returned by then.
public struct TraceReader: Sendable {
  public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
    /// Counted from 1.
    public let line: Int
    public let text: String
    public var description: String { "line \(line): \(text)" }

    public init(line: Int, text: String) { (self.line, self.text) = (line, text) }
  }

  public struct Numbered: Sendable {
    /// Counted from 1.
    public var number: Int
    public var line: LogLine
    /// Set on the first line of each trace.
    public var header: TraceHeader?
  }

  public static let maximumBytes = 16 << 20
  /// The longest time between two lines. Calls and background times are shorter; a longer gap means that the clock was set, or
  /// that two traces have no header between them.
  public static let longestGap = Duration.seconds(86_400)

  private let bytes: [UInt8]
  private var index = 0
  private var number = 0
  private var last: Instant?
  private var header: TraceHeader?
  /// Lines since the header.
  private var count = 0

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Nil at the end.
  public mutating func next() throws(Problem) -> Numbered? {
    guard bytes.count <= Self.maximumBytes else {
      throw problem(1, "the file has more than \(Self.maximumBytes >> 20) MiB: cut it before a line `app trace`")
    }
    while index < bytes.count {
      let end = bytes[index...].firstIndex(of: UInt8(ascii: "\n"))
      var line = bytes[index..<(end ?? bytes.count)]
      index = (end ?? bytes.count) + 1
      number = number + 1
      if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
      if line.isEmpty { continue }
      return try checked(line, hasEnd: end != nil)
    }
    guard header != nil else { throw problem(1, "the file is empty: it holds nothing of `Phone.trace`") }
    try checkCount()
    return nil
  }

  private func problem(_ line: Int, _ text: String) -> Problem { Problem(line: line, text: text) }

  private mutating func checked(_ bytes: ArraySlice<UInt8>, hasEnd: Bool) throws(Problem) -> Numbered {
    let line: LogLine
    do {
      line = try LogLine(parsing: bytes)
    } catch {
      if header == nil {
        throw problem(number, "this is not a trace: \(error.text). Give the lines of `Phone.trace`, as they are")
      }
      if !hasEnd { throw problem(number, "the trace was cut within this line: export it again, whole") }
      throw problem(number, "\(error.text): the file was changed, or cut; export it again, as it is")
    }
    let new = TraceHeader(line)
    guard header != nil || new != nil else {
      throw problem(
        number, "the first line is not a header (`app trace version=…`): the beginning is cut off; export the trace again")
    }
    if let new { try begin(new, line) } else { try follow(line) }
    // half a word parses, too: only the count shows that the last line is whole
    if !hasEnd, header?.lines != count { throw problem(number, "the trace was cut within this line: export it again, whole") }
    return Numbered(number: number, line: line, header: new)
  }

  private mutating func begin(_ new: TraceHeader, _ line: LogLine) throws(Problem) {
    if header != nil { try checkCount() }
    guard let version = line["version"].flatMap({ Int($0) }), version > 0 else {
      throw problem(number, "the header has no version: export the trace again")
    }
    guard version <= TraceHeader.version else {
      throw problem(
        number,
        "the trace is of format \(version), and this program reads format \(TraceHeader.version): use a newer trunkline-lab")
    }
    guard line.time == .zero else { throw problem(number, "the header's time is not 0.000: export the trace again") }
    (header, last, count) = (new, line.time, 0)
  }

  private mutating func follow(_ line: LogLine) throws(Problem) {
    count += 1
    defer { last = line.time }
    guard let last else { return }
    if line.time < last {
      throw problem(
        number,
        "the clock goes back, from \(LogLine.text(last)) to \(LogLine.text(line.time)) s: lines are mixed up; export the trace again"
      )
    }
    if line.time - last > Self.longestGap {
      throw problem(
        number,
        "the clock jumps from \(LogLine.text(last)) to \(LogLine.text(line.time)) s: record the trace again without setting it")
    }
  }

  private func checkCount() throws(Problem) {
    guard let lines = header?.lines, lines > count else { return }
    throw problem(number, "the trace was cut here: \(count) of \(lines) lines are present; export the whole trace again")
  }
}
