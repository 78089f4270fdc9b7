import Testing
import TrunklineBytes

@testable import TrunklinePhoneLog

/// One line of the log: a written line can be read again, and any other text is refused.
@Suite struct LogLineTests {
  private func read(_ text: String) throws(LogLine.Problem) -> LogLine { try LogLine(parsing: Array(text.utf8)[...]) }

  @Test(arguments: [
    "0.000 network push id=1", "2.016 app report call=11111111-1111-4111-8111-111111111111 handle=+15550009999 kind=phone",
    "1000000000.000 system didActivate", #"0.999 app violation rule=R6 text="completed twice, or \"late\"""#,
    #"1.000 app provider groups=2 handles="""#, "12.345 user tap button=answer call=x", "0.001 system reported call=ä error=none",
  ])
  func `a line is read and written back to the byte`(text: String) throws {
    #expect(try read(text).description == text)
  }

  @Test func `any value survives, whatever is in it`() throws {
    for value in ["", " ", "a b", "\"", "\\", "\\\"", "a\\b", "\u{1}\n\t", "\u{7F}", "=", "ü 🙂", "\"a\" \\u0041"] {
      let line = LogLine(.zero + .milliseconds(20), .app, "note", [("text", value), ("next", "1")])
      let again = try read(line.description)
      #expect(again["text"] == value && again["next"] == "1", "\(line)")
    }
  }

  @Test(arguments: [
    ("", "first word is not a time"), ("x app launched", "first word is not a time"),
    ("1 app launched", "first word is not a time"),
    ("1.0 app launched", "first word is not a time"), ("-1.000 app launched", "first word is not a time"),
    ("9999999999999.000 app launched", "first word is not a time"), ("1.000", "second word is not app"),
    ("1.000 phone launched", "second word is not app"), ("1.000 app", "third word is not an event"),
    ("1.000 app a-b", "third word is not an event"), ("1.000 app report call", "a field is not key=value"),
    ("1.000 app report =x", "a field is not key=value"), (#"1.000 app report text="open"#, "a string has no end"),
    (#"1.000 app report text="a"b"#, "a string continues after its end"), (#"1.000 app report text="\q""#, "unknown escape"),
    (#"1.000 app report text="\u00""#, "unknown escape"), (#"1.000 app report text="\ud800""#, "unknown escape"),
    ("1.000 app report" + String(repeating: " a=1", count: 33), "more than 32 fields"),
    ("1.000 app report a=" + String(repeating: "x", count: 5_000), "longer than 4096 bytes"),
  ])
  func `what is no line is refused, with why`(text: String, says: String) {
    let problem = #expect(throws: LogLine.Problem.self) { try read(text) }
    #expect(problem?.text.contains(says) == true, "\(String(describing: problem))")
  }

  @Test func `bytes that are not UTF-8 are refused`() {
    #expect(throws: LogLine.Problem.self) { try LogLine(parsing: (Array("1.000 app report a=".utf8) + [0xFF, 0xFE])[...]) }
  }

  @Test func `any cut of a line is refused or is a shorter line, and never traps`() {
    let text = Array(#"12.345 system perform action=1 do=hold call=1111 on=true text="a \u0007 b" timeout=5.000"#.utf8)
    for end in 0...text.count { _ = try? LogLine(parsing: text[..<end]) }
    for index in text.indices {
      for byte in [UInt8](0...255) {
        var changed = text
        changed[index] = byte
        _ = try? LogLine(parsing: changed[...])
      }
    }
  }
}
