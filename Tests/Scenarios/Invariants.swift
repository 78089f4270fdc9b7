import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// What holds after every run, whatever happened.
enum Invariants {
  static func broken(_ text: String) { Issue.record(Comment(rawValue: text)) }

  /// After each `.timer` at `now`: a deadline that stays in the past stops or spins the loop that waits for it.
  static func timer(_ next: Instant?, _ now: Instant, _ machine: String) {
    if let next, next <= now { broken("after a timer at \(now) \(machine) waits for \(next)") }
  }

  /// Every message on the wire between gateway and carrier.
  static func look(at bytes: [UInt8], fromGateway: Bool, _ world: World) {
    guard let message = try? Message(bytes), let callID = message.field(.callID).map({ message.text($0.value) }) else { return }
    let sequence = message.field(.cseq).map { message.text($0.value) } ?? ""
    if message.method == .invite {
      if fromGateway { world.sentINVITEs.insert(callID) } else { world.receivedINVITEs.insert(callID) }
    }
    // a re-INVITE has finals of its own
    if message.method == .invite, !fromGateway, world.firstSequences[callID] == nil { world.firstSequences[callID] = sequence }
    guard fromGateway, let code = message.statusCode, code >= 200, sequence.hasSuffix("INVITE"),
      world.firstSequences[callID] == sequence
    else { return }
    if world.finals[callID] == nil, code == 200 { answered(callID, world) }
    world.finals[callID, default: []].insert(code)
  }

  /// No 200 before the gate: the winner is locked and its media is up.
  private static func answered(_ callID: String, _ world: World) {
    guard let summary = world.machine.summaries.first(where: { $0.sipCallId == callID }) else { return }
    // the number that it was diverted to has answered, or a program: no device is on the line
    if let call = world.machine.calls[summary.call], call.isDivertedToNumber || call.stream.audio != nil { return }
    guard let session = world.media.calls.first(where: { $0.value == summary.call })?.key,
      let winner = world.media.locked[session],
      world.media.up[session]?.contains(winner) == true, summary.devices.first?.ready == true
    else { return broken("200 before the media gate") }
  }

  /// After the last call: let everything run out, then nothing may be left. `abandoned`: devices that never came back need
  /// not have heard.
  static func check(_ world: World, abandoned: Set<String> = [], _ location: SourceLocation = #_sourceLocation) {
    world.run(.seconds(3))
    #expect(world.machine.summaries.isEmpty, "calls are left", sourceLocation: location)
    checkBooks(world, location)
    checkDevices(world, abandoned, location)
    for app in world.apps { app.drop(.normal) }
    for handset in world.handsets { handset.check(location) }
    // answers of devices without a session are kept for an hour, and a session without a socket for two minutes before
    world.run(.seconds(4_000))
    #expect(world.machine.nextDeadline == nil, "timers are left", sourceLocation: location)
    #expect(world.machine.statistics.tombstones == 0, sourceLocation: location)
    let machine = world.machine
    #expect(
      machine.calls.isEmpty && machine.calls.legs.isEmpty && machine.pending.isEmpty && machine.direct.isEmpty, "keys are left",
      sourceLocation: location)
    #expect(machine.trunksWithCalls.isEmpty && machine.presences.isEmpty, sourceLocation: location)
    #expect(
      world.machine.statistics.states.values.allSatisfy { $0 == 0 }, "a gauge is not back at zero", sourceLocation: location)
    let sip = world.userAgent.statistics
    #expect(
      sip.legs == 0 && sip.serverTransactions == 0 && sip.clientTransactions == 0, "SIP state is left", sourceLocation: location)
    #expect(world.userAgent.nextDeadline == nil, sourceLocation: location)
    #expect(world.media.open.isEmpty, "media sessions are left", sourceLocation: location)
    #expect(
      world.sessions.resumableCount == 0 && world.sessions.nextDeadline == nil, "sessions are left", sourceLocation: location)
  }

  /// INVITEs = calls + counted refusals, one record per call, one final response each, nothing answered without media.
  private static func checkBooks(_ world: World, _ location: SourceLocation) {
    let statistics = world.machine.statistics
    // no INVITE of a call between users is ever written
    let refused = world.refusals.count { $0.direction == .incoming && $0.trunk != Routing.directTrunk }
    let direct = world.records.count { $0.direction == .incoming && $0.trunk == Routing.directTrunk }
    #expect(
      world.receivedINVITEs.count == statistics.incoming - direct + refused, "an INVITE is in no book", sourceLocation: location)
    #expect(
      world.records.count == statistics.incoming + statistics.outgoing, "records do not match calls", sourceLocation: location)
    #expect(Set(world.records.map(\.call)).count == world.records.count, "two records of one call", sourceLocation: location)
    #expect(world.finals.values.allSatisfy { $0.count == 1 }, "two final responses: \(world.finals)", sourceLocation: location)
    #expect(Set(world.finals.keys) == world.receivedINVITEs, "an INVITE has no final response", sourceLocation: location)
    #expect(statistics.answeredWithoutMedia == 0, sourceLocation: location)
    #expect(Set(world.pushes.map(\.key)).count == world.pushes.count, "a device was pushed to twice", sourceLocation: location)
    for record in world.records where record.direction == .outgoing && record.trunk != Routing.directTrunk && !record.isTest {
      let sent = record.times[CallStage.inviteSent.rawValue] != nil
      #expect(world.sentINVITEs.contains(record.sipCallId ?? "") == sent, "INVITE and record disagree", sourceLocation: location)
    }
  }

  /// At most one winner; exactly one terminal message per (call, device).
  private static func checkDevices(_ world: World, _ abandoned: Set<String>, _ location: SourceLocation) {
    for record in world.records {
      let winners = world.apps.filter { $0.won.contains(record.call) }
      #expect(winners.count <= 1, "two winners", sourceLocation: location)
      for app in world.apps {
        let terminals = app.terminals[record.call] ?? []
        if app.offered.contains(record.call), !abandoned.contains(app.device) {
          #expect(terminals.count == 1, "\(app.device): \(terminals)", sourceLocation: location)
        } else {
          #expect(terminals.count <= 1, "\(app.device): \(terminals)", sourceLocation: location)
        }
      }
    }
  }
}
