import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import AppleStandIn
@testable import TrunklineClient

/// What is true in any order of events: the INV row of the requirements, at the telephone's end.
extension Handset {
  // MARK: at once

  /// ANS-1: the answer is done when the caller is heard, not when the user has tapped.
  func lookAtAnswer(of call: CallID) {
    let state = world.machine.summaries.first { $0.call == call }?.state
    // a hang-up may be on its way already
    if let state, state != .connected, state != .ended {
      violations.append("INV: the answer of \(call) is fulfilled before call.connected")
    }
  }

  /// R8, R9: audio starts without `didActivate` only when that is due.
  func lookAtStart() {
    let isLate = heardAt.map { world.now - $0 >= .seconds(1) } ?? false
    if !system.isAudioActive, !isLate { violations.append("INV: audio starts before didActivate") }
  }

  func lookAt(_ request: ClientCall.MediaRequest, of call: CallID) {
    if closedMedia.contains(call) { violations.append("INV: \(request) of \(call) behind its end") }
  }

  // MARK: a second after the last event

  /// What the screen shows is what the gateway knows, while they can reach each other.
  func disagreements() -> [String] {
    guard isOnline, isLinkUp, state == .online else { return [] }
    var found: [String] = []
    let summaries = world.machine.summaries
    for (id, call) in system.calls where call.phase != .ended {
      // it waits for a login
      if call.phase == .dialling, !hasToken { continue }
      guard let known = summaries.first(where: { $0.call == id }) else {
        found.append("the screen shows \(id) as \(call.phase), and the gateway has no such call")
        continue
      }
      let isSame =
        switch call.phase {
        case .ringing: known.state == .parked || known.state == .ringing
        case .answering: known.state == .parked || known.state == .ringing || known.state == .answering
        case .dialling: known.state == .starting || known.state == .ready
        case .connecting: known.direction == .outgoing && known.state != .connected
        case .active: known.state == .connected && known.held == call.isHeld && known.muted == call.isMuted
        case .ended: true
        }
      if !isSame {
        found.append(
          "\(id): the screen shows \(call.phase) held \(call.isHeld) muted \(call.isMuted), the gateway has \(known.state) "
            + "held \(known.held) muted \(known.muted)")
      }
    }
    // the session of a push may not end what a killed process left
    guard hasToken else { return found }
    for known in summaries where known.state == .connected && known.devices.contains(where: { $0.device == device }) {
      if system.calls[known.call]?.phase != .active { found.append("\(known.call) is connected and not on the screen") }
    }
    return found
  }

  /// At most one call has audio, and a call that talks has it.
  func audioFaults() -> [String] {
    let talking = system.calls.filter { $0.value.phase == .active && !$0.value.isHeld }.map(\.key)
    var found: [String] = []
    if isAudioRunning, listening.map({ !shown.contains($0) }) ?? true { found.append("audio runs for no call") }
    if !talking.isEmpty, isOnline, isLinkUp, state == .online, !isAudioRunning { found.append("\(talking) without audio") }
    return found
  }

  // MARK: its trace

  /// What `trunkline-lab check-trace` would report of the SDK's own trace; `expected`: what this person does that no screen
  /// offers.
  func contradictions(_ expected: Set<SystemMachine.Rule>) -> [String] {
    guard !traces.isEmpty else { return [] }
    let text = traces.flatMap(\.text).map { $0 + "\n" }.joined()
    let verdict = TraceCheck.judge(Array(text.utf8), rules: system.rules)
    return verdict.contradicted.isSubset(of: expected) && verdict.problem == nil
      ? [] : [verdict.text(name: "trace") + "\n" + text]
  }

  // MARK: after the last call

  /// What a run left behind although it must not, by name.
  func leftovers() -> [String] {
    var found = violations
    if !shown.isEmpty { found.append("calls are left on the screen: \(shown)") }
    for (call, reasons) in ends where reasons.count > max(1, reports[call] ?? 0) {
      found.append("the end of \(call) was reported \(reasons)")
    }
    // the system requires a report for each push, and a new process knows of none
    for (call, count) in accepted where count > Int(launches) + (pushed[call] ?? 0) {
      found.append("\(count) reports of \(call) were accepted")
    }
    if Set(completed.map(\.action)).count != completed.count { found.append("an action was completed twice") }
    if system.pending != nil || !system.queue.isEmpty { found.append("an action is not completed") }
    if isAudioRunning || system.isAudioActive { found.append("audio runs") }
    if phone?.liveCalls.isEmpty == false { found.append("the phone has calls") }
    if let last = audio.last, last != .release { found.append("the audio device is not released: \(audio)") }
    return found
  }

  var isClean: Bool { leftovers().isEmpty }

  /// In the background and without a call neither machine waits for anything, once the app has its token.
  func timers() -> [String] {
    var found: [String] = []
    if let due = system.nextTimeout { found.append("the system waits until \(due)") }
    if hasToken, let due = phone?.nextDeadline { found.append("the phone waits until \(due)") }
    return found
  }

  /// Whatever happened: no strike, nothing on the screen, no action or timer left, and no sound.
  func check(_ location: SourceLocation) {
    let found = leftovers()
    #expect(found.isEmpty, "\(found)", sourceLocation: location)
    isLinkUp = true
    background()
    world.run(.seconds(400))
    let waiting = timers()
    #expect(waiting.isEmpty, "timers are left: \(waiting)", sourceLocation: location)
    kill()
  }
}
