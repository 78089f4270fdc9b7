import AppleStandIn

/// The trace of a device, as a mail or an editor may leave it: read, and judged by the rules. The first byte chooses the header, so that the
/// bytes get past it.
@Sendable func fuzzTrace(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  var header = TraceHeader(first & 1 == 1 ? .sdk : .standIn)
  if first & 2 == 2 { header.dropped = 1 }
  if first & 4 == 4 { header.hasVoIPBackgroundMode = false }
  let text = first & 8 == 8 ? Array(bytes.dropFirst()) : Array("\(header.line)\n".utf8) + bytes.dropFirst()
  let verdict = TraceCheck.judge(text)
  let said = verdict.text(name: "trace")
  precondition(!said.isEmpty && said.utf8.count < 1 << 20, "a verdict can be read")
  precondition(verdict.problem != nil || !verdict.headers.isEmpty, "what is no trace is said to be none")
  for finding in verdict.findings {
    precondition(finding.position.line >= 1 && finding.position.line <= text.count + 1, "a finding has its line")
  }
  // a line that was read is written back, and read again
  var reader = TraceReader(text)
  while let next = try? reader.next() {
    precondition((try? LogLine(parsing: Array(next.line.description.utf8)[...])) == next.line, "\(next.line)")
  }
}
