import Logging
import Testing
import TrunklineBytes

@testable import Telemetry

@Suite struct LogRatesTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private let rates = LogRates()

  private func admit(
    _ fields: Logger.Metadata, _ level: Logger.Level = .notice, _ message: String = "refused", after: Duration = .zero
  ) -> UInt64? {
    rates.admit("app", message: message, level: level, fields: fields, at: start + after)
  }
  private func burst(_ count: Int, _ fields: (Int) -> Logger.Metadata) -> Int { (0..<count).count { admit(fields($0)) != nil } }

  @Test func `the next line that is written says how many of its kind and cause were left out`() {
    #expect(burst(50) { _ in ["user": "mallory"] } == 20)
    #expect(admit(["user": "mallory"], after: .seconds(1)) == 30 && admit(["user": "mallory"], after: .seconds(1)) == 0)
    #expect(rates.omitted.value == 30)
  }

  @Test func `an address counts without its port, IPv6 by /64, a flow by its peer`() {
    #expect(burst(50) { ["from": "192.0.2.1:\(1_000 + $0)"] } == 20)
    #expect(admit(["address": "192.0.2.1"]) == nil, "the same source under another name")
    #expect(burst(50) { ["address": "2001:db8:1:1::\($0)"] } == 20)
    #expect(burst(50) { ["flow": "tcp 198.51.100.1:5060 ↔ 192.0.2.9:\(1_000 + $0)"] } == 20)
  }

  @Test func `sources that are made up have the bound of the kind together, and leave others' kinds alone`() {
    #expect(burst(10_000) { ["from": "10.\($0 / 65_536).\($0 / 256 % 256).\($0 % 256)"] } == 200)
    #expect(admit(["from": "10.0.0.1"], .notice, "another kind") == 0)
    #expect(burst(1_000) { ["call": "\($0)"] } == 0, "a call's id is no cause: the kind is used up")
    #expect(admit(["from": "10.0.0.1"], after: .seconds(60)) != nil)
  }

  @Test func `what nobody outside causes, what has a record and what ends the process is always written`() {
    for _ in 0..<1_000 {
      #expect(admit(["setting": "x"]) == 0 && admit(["user": "a"], .info) == 0 && admit(["user": "a"], .critical) == 0)
    }
  }

  @Test func `what is left out and not told by a line is told when the source is quiet, or at the end`() {
    _ = burst(25) { _ in ["user": "mallory"] }
    #expect(rates.sweep(at: start + .seconds(9)).isEmpty, "it may still be told by the next line")
    let rest = rates.sweep(at: start + .seconds(25))
    #expect(rest == [.init(kind: .init(label: "app", message: "refused", by: "mallory"), count: 5)])
    _ = burst(25) { _ in ["user": "eve"] }
    #expect(rates.sweep(at: start, isLast: true).first?.count == 5 && rates.sweep(at: start, isLast: true).isEmpty)
  }
}
