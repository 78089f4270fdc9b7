import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

// One part of the user agent alone: each step is made by hand, and what the part appended to it is compared.

let somePeer = SocketAddress("203.0.113.50:5060")!
let leg1 = LegID.inbound(1)

func flow(_ transport: TransportProtocol, _ remote: String = "203.0.113.7:5060") -> Flow {
  Flow(transport: transport, local: gatewayAddress, remote: SocketAddress(remote)!)
}

extension Step {
  /// The first step, or the next one: deadlines stay, outputs begin empty.
  static func at(_ milliseconds: Int, after last: Step? = nil) -> Step {
    var step = Step()
    step.now = .zero + .milliseconds(milliseconds)
    if let last { (step.timers, step.counters) = (last.timers, last.counters) }
    return step
  }

  /// The texts of the messages, with where they go.
  var sent: [String] { output.messages.map { "\(String(decoding: $0.bytes, as: UTF8.self)) \($0.flow.remote)" } }

  /// The deadlines in their order, in milliseconds from the beginning.
  var due: [String] {
    var (queue, out) = (timers, [String]())
    while let next = queue.next, let key = queue.popDue(at: next) { out.append("\((next - .zero).milliseconds) \(key.name)") }
    return out
  }

  var isQuiet: Bool { output.messages.isEmpty && output.events.isEmpty && timers.count == 0 }
}

extension TimerKey {
  var name: String {
    switch self {
    case .server(let id, let timer): "server \(id) \(timer)"
    case .client(let id, let timer): "client \(id) \(timer)"
    case .leg(_, let timer): "\(timer)"
    case .orphans: "orphans"
    }
  }
}

/// As `#expect`, for a condition that changes a part: the macro cannot call mutating functions.
func holds(_ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, comment, sourceLocation: sourceLocation)
}
