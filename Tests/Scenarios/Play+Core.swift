import AppSessions
import CallFlow
import GatewayCore
import PushPolicy
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The gateway's core and the trunk's end, and the wire between them; how time passes.
extension Play {
  mutating func feed(_ input: CallMachine.Input) {
    later(input)
    pump()
  }

  mutating func later(_ input: CallMachine.Input) { events.append(.core(.call(input))) }

  /// The trunk's end does something.
  mutating func trunkDoes(_ command: UserAgent.Command) {
    events.append(.carrier(.command(command)))
    pump()
  }

  mutating func pump() {
    guard !isPumping else { return }
    isPumping = true
    while !events.isEmpty {
      switch events.removeFirst() {
      case .core(let input): run(input)
      case .carrier(let input): runCarrier(input)
      }
    }
    isPumping = false
  }

  private mutating func run(_ input: GatewayCore.Input) {
    var output = GatewayCore.Output()
    var requests: [MediaRequest] = []
    core.handle(input, at: now, into: &output) { request in
      requests.append(request)
      return .mediaReserved(request.call, MediaScript.reservation(request.session))
    }
    if case .timer = input { Invariants.timer(core.nextDeadline, now, "the gateway's core") }
    for request in requests {
      if session == nil { (call, session) = (request.call, request.session) }
      closes[request.session] = 0
    }
    for effect in output.effects {
      switch effect {
      case .sendSIP(let message): transmit(.carrier(.received(message.bytes, Self.gateway.flow, trunk: "gateway")))
      case .action(let action): perform(action)
      case .cluster: break  // alone
      case .authenticated, .silent, .challengeRefused: break
      }
    }
  }

  private mutating func transmit(_ message: Event) {
    if crossing == nil { events.append(message) } else { crossing?.append(message) }
  }

  /// What both sides send in `body` meets on the wire.
  mutating func cross(_ body: (inout Play) -> Void) {
    crossing = []
    body(&self)
    events += crossing ?? []
    crossing = nil
    pump()
  }

  private mutating func runCarrier(_ input: UserAgent.Input) {
    var output = UserAgent.Output()
    carrier.handle(input, at: now, into: &output)
    for message in output.messages {
      if message.bytes.starts(with: "SIP/2.0 491".utf8) { trunk.append("491") }
      transmit(.core(.sip(.received(message.bytes, Self.carrier.flow, trunk: "carrier"))))
    }
    for event in output.events { received(event) }
  }

  private mutating func perform(_ action: CallMachine.Action) {
    switch action {
    case .app(let command): tell(.command(command))
    case .media(let command): perform(command)
    case .journal(let line): later(.journalled(line.call))
    case .record(let record): records.append(record)
    case .push(let key, let target, let content, _):
      pushes.append((key, content, target, false))
      if devices.contains(where: { $0.name == key.device && !$0.terminals.isEmpty }) { strays.append("a push behind the end") }
    case .askRoute(let question, _): (call, isAsked) = (question.call, true)
    default: break
    }
  }

  /// Time passes; every timer fires at its own instant.
  mutating func pass(_ duration: Duration) {
    let end = now + duration
    while let due = nextDeadline, due <= end {
      now = max(now, due)
      if let own = sessions.nextDeadline, own <= now { tell(.timer) }
      if let own = core.nextDeadline, own <= now { events.append(.core(.timer)) }
      if let own = carrier.nextDeadline, own <= now { events.append(.carrier(.timer)) }
      pump()
    }
    now = end
  }

  var nextDeadline: Instant? {
    .earliest(.earliest(core.nextDeadline, sessions.nextDeadline), carrier.nextDeadline)
  }
}
