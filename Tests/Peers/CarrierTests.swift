import SpeechScore
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import Peers

/// Two simulated carriers against each other: what one says the other hears.
@Suite(.serialized) struct CarrierTests {
  private func pair(_ port: UInt16, _ change: (inout SimulatedCarrier.Options) -> Void = { _ in }) -> (
    SimulatedCarrier.Options, SimulatedCarrier.Options
  ) {
    var caller = SimulatedCarrier.Options()
    (caller.listen, caller.gateway) = (SocketAddress(.loopback, port), SocketAddress(.loopback, port + 2))
    (caller.call, caller.talk) = ("+15551230001", .seconds(3))
    var callee = SimulatedCarrier.Options()
    (callee.listen, callee.gateway, callee.calls) = (caller.gateway, caller.listen, 1)
    callee.samples = SpeechSource.app
    change(&caller)
    return (caller, callee)
  }

  private func run(_ options: (SimulatedCarrier.Options, SimulatedCarrier.Options)) throws -> (
    SimulatedCarrier.CallReport?, SimulatedCarrier.CallReport?
  ) {
    let callee = try SimulatedCarrier(options.1) { _ in }
    let caller = try SimulatedCarrier(options.0) { _ in }
    let thread = try NamedThread.start(name: "callee") { callee.run() }
    caller.run()
    callee.stop()
    thread.join()
    return (caller.reports.first, callee.reports.first)
  }

  @Test(arguments: [TransportProtocol.udp, .tcp]) func `both ends hear each other from the first word`(
    _ transport: TransportProtocol
  ) throws {
    let (caller, callee) = try run(pair(17_080) { $0.transport = transport })
    let first = try #require(caller)
    let second = try #require(callee)
    #expect(first.wasAnswered && second.wasAnswered && first.lost == 0 && second.lost == 0)
    for (spoken, heard) in [(first.spoken, second.heard), (second.spoken, first.heard)] {
      // Three seconds are spoken before the call ends.
      let comparison = try #require(SpeechComparison(played: Array(spoken.prefix(20_000)), heard: heard))
      #expect(comparison.heardSpeech && comparison.clippedStartMilliseconds == 0)
      #expect(comparison.similarity > 0.97 && abs(comparison.levelDifferenceDecibels) < 0.2)
    }
  }

  @Test func `digits arrive as telephone events and losses are counted`() throws {
    let (caller, callee) = try run(
      pair(17_090) {
        $0.digits = "12#*0"
        $0.lossPercent = 5
        $0.jitterMilliseconds = 20
      })
    #expect(try #require(callee).digits == "12#*0")
    let report = try #require(callee)
    let sent = try #require(caller).sent
    #expect(report.lost > 0 && report.received < sent && report.jitterMilliseconds > 1)
  }

  @Test func `a refusing carrier ends the call with its code`() throws {
    let (caller, _) = try run(
      {
        var options = pair(17_100)
        options.1.refuse = 486
        return options
      }())
    #expect(caller?.code == 486 && caller?.wasAnswered == false)
  }

  @Test func `SRTP with keys in the SDP: both hear each other, and no packet is refused`() throws {
    let (caller, callee) = try run(
      {
        var options = pair(17_110)
        (options.0.srtp, options.1.srtp) = (.required, .optional)
        return options
      }())
    for report in [try #require(caller), try #require(callee)] {
      #expect(report.profile == "SRTP_AEAD_AES_128_GCM" && report.refused == 0 && report.received > 100)
    }
    let spoken = Array((caller?.spoken ?? []).prefix(20_000))
    let comparison = try #require(SpeechComparison(played: spoken, heard: callee?.heard ?? []))
    #expect(comparison.heardSpeech && comparison.similarity > 0.97)
  }

  @Test(arguments: [(SimulatedCarrier.SRTPRule.required, SimulatedCarrier.SRTPRule.off), (.off, .required), (.optional, .off)])
  func `who has no keys gets plain RTP where it may be, and no call where not`(
    _ first: SimulatedCarrier.SRTPRule, _ second: SimulatedCarrier.SRTPRule
  ) throws {
    let (caller, _) = try run(
      {
        var options = pair(17_120) { $0.talk = .milliseconds(300) }
        (options.0.srtp, options.1.srtp) = (first, second)
        return options
      }())
    let report = try #require(caller)
    #expect(report.wasAnswered == (first == .optional) && report.profile == nil)
    if first != .optional { #expect(report.code == 488) }
  }
}
