import Testing
import TrunklineBytes

@testable import TrunklinePhoneLog

/// Files of traces that are cut, mixed up, of a newer format, or no trace.
@Suite struct TraceReaderTests {
  private static let header = TraceHeader(.sdk).line.description

  /// The lines that were returned, and the problem that ended the reading.
  private func read(_ bytes: [UInt8]) -> (lines: [TraceReader.Numbered], problem: TraceReader.Problem?) {
    var (reader, lines): (TraceReader, [TraceReader.Numbered]) = (TraceReader(bytes), [])
    do {
      while let next = try reader.next() { lines.append(next) }
    } catch {
      return (lines, error)
    }
    return (lines, nil)
  }
  private func read(_ text: String) -> (lines: [TraceReader.Numbered], problem: TraceReader.Problem?) { read(Array(text.utf8)) }

  @Test func `a header says who wrote, of what system, and what is gone`() {
    var header = TraceHeader(.sdk)
    (header.system, header.os, header.hasVoIPBackgroundMode) = ("CallKitSystem", "Version 26.4 (Build 23E1)", true)
    (header.dropped, header.lines) = (125, 2)
    let (lines, problem) = read("\(header.line)\n0.000 app provider\n1.000 system didBegin\n")
    #expect(problem == nil && lines.first?.header == header && lines.map(\.number) == [1, 2, 3])
    #expect(lines.dropFirst().allSatisfy { $0.header == nil })
  }

  @Test func `lines joined without an end after the last one are whole where the header counts them`() {
    var header = TraceHeader(.sdk)
    header.lines = 1
    #expect(read("\(header.line)\n0.000 app provider groups=2").problem == nil)
  }

  @Test func `several traces in a file count their times anew; empty lines and the ends of other systems are nothing`() {
    let (lines, problem) = read("\(Self.header)\r\n5.000 app launched\r\n\n\(Self.header)\n0.000 app launched\n")
    #expect(problem == nil && lines.map(\.number) == [1, 2, 4, 5] && lines.count { $0.header != nil } == 2)
  }

  @Test(arguments: [
    ("", 1, "the file is empty"), ("\n\n", 1, "the file is empty"), ("hello\n", 1, "this is not a trace"),
    ("0.000 app launched\n", 1, "the first line is not a header"),
    (
      "0.000 app trace version=2 by=TrunklineClient\n1.000 app launched\n", 1,
      "format 2, and this program reads format 1: use a newer"
    ),
    ("0.000 app trace by=TrunklineClient\n", 1, "no version"), ("0.000 app trace version=0\n", 1, "no version"),
    ("1.000 app trace version=1\n", 1, "time is not 0.000"),
    ("\(header)\n5.000 app launched\n4.999 system didBegin\n", 3, "the clock goes back, from 5.000 to 4.999 s"),
    ("\(header)\n1.000 app launched\n90000.000 system didBegin\n", 3, "the clock jumps from 1.000 to 90000.000 s"),
    ("\(header)\n1.000 app launched\n1.5 sys\n2.000 system didBegin\n", 3, "export it again"),
    ("\(header)\n1.000 app launched\n1.500 system didBe=", 3, "the trace was cut within this line"),
    ("\(header)\n1.000 app launched\n1.500 system perform on=tr", 3, "the trace was cut within this line"),
    ("\(header)", 1, "the trace was cut within this line"),
    ("\(header) lines=3\n1.000 app launched\n", 2, "the trace was cut here: 1 of 3 lines"),
    ("\(header)\n1.000 app launched\n\(String(repeating: "x", count: 9_000))\n", 3, "longer than 4096 bytes"),
  ])
  func `what cannot be read is refused with its line and what to do, and what stands before it is handed out`(
    text: String, line: Int, says: String
  ) {
    let (lines, problem) = read(text)
    #expect(problem?.line == line && problem?.text.contains(says) == true, "\(String(describing: problem))")
    #expect(lines.allSatisfy { $0.number <= line })
    #expect(problem?.description.hasPrefix("line \(line): ") == true)
  }

  @Test func `a file that is too large is refused before it is looked into`() {
    let problem = read([UInt8](repeating: UInt8(ascii: "\n"), count: TraceReader.maximumBytes + 1)).problem
    #expect(problem?.text.contains("more than 16 MiB: cut it") == true)
  }

  @Test func `binary bytes are no trace, and in a trace they end it`() {
    let noise = (0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 197 &+ $0 >> 3) }
    #expect(read(noise).problem?.text.contains("this is not a trace") == true)
    let (lines, problem) = read(Array("\(Self.header)\n1.000 app launched\n".utf8) + noise + [10])
    #expect(lines.count == 2 && problem != nil)
  }
}
