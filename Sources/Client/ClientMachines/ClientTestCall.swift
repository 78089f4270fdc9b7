public import TrunklineAppProtocol
import TrunklineBytes

/// The call to the gateway itself that a preflight test makes (docs/reference/protocol.md, Test calls): an outgoing call without
/// a call screen. The gateway ends it after 5 s. No clock, I/O or threads.
struct ClientTestCall: Sendable {
  let id: Identifier
  /// The time by which the gateway should have ended the call.
  let deadline: Instant
  private var call: ClientCall
  private var refusal: ErrorCode?
  private var received: StreamStats?

  init(_ id: Identifier, until deadline: Instant) {
    (self.id, self.deadline) = (id, deadline)
    // its audio is a generated signal, which always runs
    call = ClientCall(outgoing: id, to: TestCall.destination, audio: .running)
  }

  mutating func dial(into actions: inout [ClientCall.Action]) { call.dial(into: &actions) }

  mutating func handle(_ input: ClientCall.Input, into actions: inout [ClientCall.Action]) {
    switch input {
    case .answered(.start, .failure(let failure)): refusal = failure.code
    case .message(.callEnded(let over)): received = over.received
    default: break
    }
    call.handle(input, into: &actions)
  }

  /// How it ended; nil before the end.
  var outcome: TestCallOutcome? {
    guard call.state == .ended else { return nil }
    if let refusal { return .refused(refusal) }
    return .ended(call.reason ?? .unknown, codec: call.codec, received: received)
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
    guard test == nil, state == .online, hasTestCalls, isRegistrable(), liveCalls.isEmpty else {
      return out.append(.tested(id, .unavailable))
    }
    test = ClientTestCall(id, until: now + Limits.testCallTime)
    changeTest(now, &out) { $0.dial(into: &$1) }
  }

  mutating func giveTest(_ input: ClientCall.Input, _ now: Instant, _ out: inout [Action]) {
    changeTest(now, &out) { $0.handle(input, into: &$1) }
  }

  private mutating func changeTest(
    _ now: Instant, _ out: inout [Action], _ change: (inout ClientTestCall, inout [ClientCall.Action]) -> Void
  ) {
    guard var call = test else { return }
    var actions: [ClientCall.Action] = []
    change(&call, &actions)
    test = call.outcome == nil ? call : nil
    for action in actions {
      switch action {
      case .request(let message, let tag):
        if let question = ask(message, call: call.id, now, &out) {
          tags[question] = (call.id, tag)
        } else if tag == .start {
          giveTest(.answered(tag, .failure(Failure(.tooMany))), now, &out)
        }
      case .notify(let message): send(message, call: call.id, now, &out)
      case .media(let order): out.append(.media(call.id, order))
      case .stateChanged, .digit, .quality: break
      }
    }
    if let outcome = call.outcome { out.append(.tested(call.id, outcome)) }
  }

  /// The test call's session is lost; the gateway then ends the call.
  mutating func loseTest(_ out: inout [Action]) {
    guard let lost = test else { return }
    test = nil
    out.append(.media(lost.id, .close))
    out.append(.tested(lost.id, .ended(.networkLost, codec: nil, received: nil)))
  }
}
