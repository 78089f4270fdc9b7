public import TrunklineAppProtocol
import TrunklineBytes

/// The call to the gateway itself that a preflight test makes (docs/reference/protocol.md, Test calls): an outgoing call without
/// a call screen, one at a time. The gateway ends it after 5 s. No clock, I/O or threads.
///
/// | state | `dial` | `handle` | `lose` |
/// |---|---|---|---|
/// | none | active | – | – |
/// | active | – | its actions; at the end the outcome, once → none | its id → none |
struct ClientTestCall: Sendable {
  struct Step: Sendable {
    let id: Identifier
    var actions: [ClientCall.Action] = []
    /// How it ended; nil before the end.
    var outcome: TestCallOutcome?
  }
  private struct Active: Sendable {
    let id: Identifier
    let deadline: Instant
    var call: ClientCall
    var refusal: ErrorCode?
    var received: StreamStats?
  }

  private var active: Active?

  var id: Identifier? { active?.id }
  /// The time by which the gateway should have ended the call.
  var deadline: Instant? { active?.deadline }

  /// Nil: there is a test call already.
  mutating func dial(_ id: Identifier, until deadline: Instant) -> Step? {
    guard active == nil else { return nil }
    // its audio is a generated signal, which always runs
    var call = ClientCall(outgoing: id, to: TestCall.destination, audio: .running)
    var step = Step(id: id)
    call.dial(into: &step.actions)
    active = Active(id: id, deadline: deadline, call: call)
    return step
  }

  /// Nil: there is no test call.
  mutating func handle(_ input: ClientCall.Input) -> Step? {
    guard let id else { return nil }
    switch input {
    case .answered(.start, .failure(let failure)): active?.refusal = failure.code
    case .message(.callEnded(let over)): active?.received = over.received
    default: break
    }
    var step = Step(id: id)
    active?.call.handle(input, into: &step.actions)
    guard let now = active, now.call.state == .ended else { return step }
    step.outcome =
      now.refusal.map { .refused($0) } ?? .ended(now.call.reason ?? .unknown, codec: now.call.codec, received: now.received)
    active = nil
    return step
  }

  /// Its session is lost; the gateway then ends the call.
  mutating func lose() -> Identifier? {
    defer { active = nil }
    return active?.id
  }
}

/// How the test call of a preflight ended.
public enum TestCallOutcome: Sendable, Hashable {
  /// No call was made: the gateway has no test calls, another call is active, or the phone is not online.
  case unavailable
  /// The gateway refused it, which shows nothing about the network.
  case refused(ErrorCode)
  /// - Parameters:
  ///   - codec: the codec of the audio; nil: the call was not connected.
  ///   - received: what the gateway received from this device; nil: the call ended before the gateway could measure.
  case ended(EndReason, codec: String?, received: StreamStats?)
}

extension PhoneMachine {
  mutating func startTest(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard sessions.state == .online, sessions.makesTestCalls, isRegistrable(), !calls.hasLive,
      let step = test.dial(id, until: now + Limits.testCallTime)
    else { return out.append(.tested(id, .unavailable)) }
    run(step, now, &out)
  }

  mutating func giveTest(_ input: ClientCall.Input, _ now: Instant, _ out: inout [Action]) {
    if let step = test.handle(input) { run(step, now, &out) }
  }

  private mutating func run(_ step: ClientTestCall.Step, _ now: Instant, _ out: inout [Action]) {
    for action in step.actions {
      switch action {
      case .request(let message, let tag):
        if let question = ask(message, call: step.id, now, &out) {
          requests.add(question, .message(of: step.id, tag))
        } else if tag == .start {
          giveTest(.answered(tag, .failure(Failure(.tooMany))), now, &out)
        }
      case .notify(let message): send(message, call: step.id, now, &out)
      case .media(let order): out.append(.media(step.id, order))
      case .stateChanged, .digit, .quality: break
      }
    }
    if let outcome = step.outcome { out.append(.tested(step.id, outcome)) }
  }

  mutating func loseTest(_ out: inout [Action]) {
    guard let lost = test.lose() else { return }
    out.append(.media(lost, .close))
    out.append(.tested(lost, .ended(.networkLost, codec: nil, received: nil)))
  }
}
