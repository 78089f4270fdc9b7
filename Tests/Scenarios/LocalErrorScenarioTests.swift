import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

private let call = Identifier(high: 0xca11, low: 1)

/// A second in which this machine sends nothing (ENOBUFS; EPERM, ENETUNREACH, EHOSTDOWN): each call ends as it would have, whatever its state was.
@Suite struct LocalErrorScenarioTests {
  /// What happens in a call, from its beginning on.
  enum Script: String, CaseIterable {
    case incomingEndedByTrunk, incomingEndedByApp, incomingCancelled, incomingUnanswered
    case outgoingEndedByTrunk, outgoingEndedByApp, outgoingCancelled, outgoingRefused

    var isIncoming: Bool { rawValue.hasPrefix("incoming") }
  }

  /// How the call ended: the gateway's record, the carrier's final response.
  private struct End: Equatable {
    var reason: String
    var sip: Int?
    var final: Int?
    var isConnected: Bool
  }

  /// Plays a script; `second` is when the fault begins, nil: there is none.
  private func play(_ script: Script, fault: World.SendFault = .silent, from second: Duration?) throws -> End {
    let world = World()
    let begin = world.now
    world.sendFault = { [unowned world] in
      guard let second, world.now >= begin + second, world.now < begin + second + .seconds(1) else { return nil }
      return fault
    }
    world.carrier.answers = [(.milliseconds(100), 180), (.seconds(2), script == .outgoingRefused ? 486 : 200)]
    let phone = world.app("phone") {
      $0.answersAfter = script.isIncoming && script != .incomingCancelled ? .milliseconds(1_500) : nil
    }
    if script == .incomingUnanswered { phone.answersAfter = nil }
    var leg: LegID?
    if script.isIncoming { leg = world.carrier.call() } else { phone.start(call) }
    world.run(.milliseconds(1_300))
    if script == .incomingCancelled, let leg { world.carrier.cancel(leg) }
    if script == .outgoingCancelled { phone.end(call) }
    // the longest way to an answer is two seconds, a second of errors and the pause behind it
    world.run(.seconds(7))
    let connected = world.machine.summaries.first
    if script == .incomingEndedByApp, let connected { phone.end(connected.call) }
    if script == .outgoingEndedByApp { phone.end(call) }
    if script == .incomingEndedByTrunk, let leg { world.carrier.hangUp(leg) }
    if script == .outgoingEndedByTrunk { world.carrier.hangUp(try #require(world.carrier.inboundLeg)) }
    world.run(.seconds(70))
    #expect(world.carrier.agent.statistics.legs == 0, "the carrier still has a call: \(script), \(fault) at \(second ?? .zero)")
    Invariants.check(world)
    #expect(world.records.count == 1)
    let record = try #require(world.records.first)
    return End(
      reason: record.end.reason.rawValue, sip: record.end.sip, final: leg.flatMap { world.carrier.final($0) },
      isConnected: record.times[CallStage.connected.rawValue] != nil)
  }

  @Test(arguments: Script.allCases)
  func `a second without sending, at any moment of a call, changes nothing of how it ends`(script: Script) throws {
    let undisturbed = try play(script, from: nil)
    for fault in [World.SendFault.silent, .told] {
      for milliseconds in stride(from: 0, through: 11_000, by: 290) {
        let end = try play(script, fault: fault, from: .milliseconds(milliseconds))
        #expect(end == undisturbed, "\(script), \(fault), from \(milliseconds) ms on")
      }
    }
  }
}
