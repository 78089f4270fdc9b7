import AppleStandIn
import Foundation
import TrunklineBytes

/// Requests, one per line: `at 2s tap answer`, `lock`, `expect ringing within 5s`. `at` counts from the phone's start; `#` begins
/// a comment.
struct HandsetScript: Equatable {
  struct Line: Equatable {
    var number: Int
    var at: Duration?
    var request: HandsetRequest
  }
  struct Problem: Error, CustomStringConvertible { let description: String }

  var lines: [Line]

  init(_ text: String) throws {
    lines = try text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
      var words = line.split(separator: " ").map(String.init)
      if words.isEmpty || words[0].hasPrefix("#") { return nil }
      var time: Duration?
      if words[0] == "at" {
        time = words.count > 2 ? HandsetRequest.duration(words[1]) : nil
        guard time != nil else {
          throw Problem(description: "line \(index + 1): after `at` comes a time like 2s or 300ms, and a command")
        }
        words.removeFirst(2)
      }
      guard let request = HandsetRequest(words) else {
        throw Problem(
          description:
            "line \(index + 1): unknown command: \(line)\(words[0] == "expect" ? "; there are: \(Expectation.names)" : "")")
      }
      return Line(number: index + 1, at: time, request: request)
    }
  }

  /// Runs the lines in order, and blocks. Nil: every expectation held; else the first failure.
  func run(on phone: HandsetPhone) -> String? {
    for line in lines {
      if let at = line.at { _ = phone.wait(at - phone.uptime) { _ in false } }
      if line.request == .quit { return nil }
      if let problem = line.request.run(on: phone) { return "line \(line.number): \(problem)" }
    }
    return nil
  }
}

extension HandsetRequest {
  /// Nil: done; else the expectation that failed.
  func run(on phone: HandsetPhone) -> String? {
    switch self {
    case .tap(let button): if let tap = phone.state.screen.tap(button) { phone.give(.tap(tap)) }
    case .open: phone.open()
    case .kill: phone.kill()
    case .network: phone.step { $0.networkChanged(at: $1) }
    case .input(let plain): phone.give(plain.input)
    case .push(let payload): phone.step { $0.push(payload, at: $1) }
    case .recent(let index):
      let recents = phone.state.recents
      guard index <= recents.count else { return "Recents has \(recents.count) entries" }
      phone.give(.tapRecent(recents[recents.count - index].caller))
    case .wait(let time): _ = phone.wait(time) { _ in false }
    case .expect(let expectation, let time):
      if !phone.wait(time, until: { expectation.holds($0) }) {
        return "expected \(expectation) within \(time), but \(HandsetScreen.line(phone.state))"
      }
    case .quit: break
    }
    return nil
  }
}
