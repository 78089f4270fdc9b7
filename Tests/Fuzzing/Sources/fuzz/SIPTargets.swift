import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

@Sendable func fuzzSIP(_ bytes: [UInt8]) {
  guard let message = try? Message(bytes) else { return }
  _ = try? message.checked()
  for field in message.fields { _ = message.text(field.nameRange) }
}

/// The first byte chooses the size of the segments; however they fall, the same messages must come out.
@Sendable func fuzzSIPStream(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let stream = bytes.dropFirst()
  func messages(step: Int) -> [[UInt8]] {
    var framer = StreamFramer()
    var out: [[UInt8]] = []
    var rest = stream
    while !rest.isEmpty {
      framer.append(rest.prefix(step))
      rest = rest.dropFirst(step)
      while let frame = framer.next() { if case .message(let message) = frame { out.append(message) } }
    }
    return out
  }
  precondition(messages(step: Int(first % 16) + 1) == messages(step: 4096), "a split changed what was framed")
}

/// Several datagrams, separated by a NUL byte, to one user agent: transactions and dialogs must survive any of them.
@Sendable func fuzzUserAgent(_ bytes: [UInt8]) {
  var agent = UserAgent(random: .seeded(1))
  var output = UserAgent.Output()
  let flow = Flow(
    transport: .udp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(IPAddress(127, 0, 0, 2), 5070))
  var now = Instant.zero
  for datagram in bytes.split(separator: 0, maxSplits: 32) {
    agent.handle(.received(Array(datagram), flow, trunk: "t"), at: now, into: &output)
    answer(&agent, &output, now)
    now = now + .milliseconds(300)
    if let deadline = agent.nextDeadline, deadline <= now { agent.handle(.timer, at: now, into: &output) }
  }
  for _ in 0..<200 {
    guard let deadline = agent.nextDeadline else { break }
    now = max(now, deadline)
    agent.handle(.timer, at: now, into: &output)
    output.removeAll()
  }
}

/// Plays the call machine: rings, then answers or refuses by the length of the offer.
private func answer(_ agent: inout UserAgent, _ output: inout UserAgent.Output, _ now: Instant) {
  let events = output.events
  output.removeAll()
  for event in events {
    switch event {
    case .inviteReceived(let leg, let invite):
      agent.handle(.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)), at: now, into: &output)
      let accept = (invite.sdp?.utf8.count ?? 0) % 3 > 0
      agent.handle(
        .command(
          accept ? .answer(leg, sdp: "v=0\r\n") : .refuse(leg, code: 486, reason: nil, cause: nil, retryAfter: nil)), at: now,
        into: &output)
    case .reinviteReceived(let leg, _): agent.handle(.command(.answerReinvite(leg, sdp: "v=0\r\n")), at: now, into: &output)
    case .acknowledged(let leg, _): agent.handle(.command(.bye(leg, nil)), at: now, into: &output)
    default: break
    }
  }
  output.removeAll()
}
