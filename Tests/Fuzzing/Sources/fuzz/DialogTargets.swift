import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// A user agent in the middle of calls of its own. The input is a list of steps: a byte chooses what happens, the bytes up to the
/// next NUL are put into a real message of the running dialogs: as a header line, a header value, the body, the CSeq, or in place
/// of a token. Whatever comes, the next OPTIONS must be answered, and no table may grow beyond the calls there are.
@Sendable func fuzzDialogs(_ bytes: [UInt8]) {
  var run = DialogRun()
  for step in bytes.split(separator: 0, maxSplits: 48, omittingEmptySubsequences: true) {
    guard let kind = step.first else { continue }
    run.step(kind, Array(step.dropFirst()))
  }
  run.finish()
}

private struct DialogRun {
  var agent = UserAgent(random: .seeded(1))
  var output = UserAgent.Output()
  var now = Instant.zero
  var legs: [LegID] = []
  /// Our last messages: what answers and in-dialog requests are made of.
  var sent: [Message] = []
  var count = 0
  let flow = Flow(transport: .udp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(IPAddress(127, 0, 0, 2), 5070))
  static let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.2\r\ns=-\r\nc=IN IP4 127.0.0.2\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"

  init() {
    agent.handle(
      .rules(["t": TrunkRules(redirects: .follow(hosts: []), trustsIdentity: true, allowsTransfer: true)]), at: now, into: &output
    )
    call()
    received(invite())
  }

  mutating func step(_ kind: UInt8, _ payload: [UInt8]) {
    count += 1
    now = now + .milliseconds(Int(kind) * 7)
    agent.handle(.timer, at: now, into: &output)
    react()
    let methods = ["INVITE", "ACK", "BYE", "CANCEL", "PRACK", "UPDATE", "INFO", "REFER", "NOTIFY", "OPTIONS"]
    switch kind % 8 {
    case 0: received(invite() + payload)
    case 1: received(mutated(inDialog(methods[Int(kind / 8) % methods.count]), payload, kind))
    case 2: received(mutated(inDialog(methods[Int(kind / 8) % methods.count]), payload, kind))
    case 3: received(mutated(response(Int(kind)), payload, kind))
    case 4: command(kind)
    case 5: call()
    case 6: received(payload)
    default: received(mutated(invite(), payload, kind))
    }
  }

  mutating func finish() {
    for leg in legs {
      for command in [
        UserAgent.Command.cancel(leg, nil), .refuse(leg, code: 480, reason: nil, cause: nil, retryAfter: nil), .bye(leg, nil),
      ] {
        agent.handle(.command(command), at: now, into: &output)
      }
    }
    react()
    precondition(
      agent.statistics.legs <= 64 && agent.statistics.serverTransactions <= 512 && agent.statistics.clientTransactions <= 1_024)
    output.removeAll()
    received(
      Array(
        "OPTIONS sip:a@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2:5070;branch=z9hG4bKlast;rport\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: last\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
          .utf8))
    precondition(sent.last?.statusCode == 200, "the next OPTIONS was not answered")
    for _ in 0..<2_000 {
      guard let deadline = agent.nextDeadline else { return }
      now = max(now, deadline)
      agent.handle(.timer, at: now, into: &output)
      react()
    }
  }

  private mutating func received(_ bytes: [UInt8]) {
    agent.handle(.received(bytes, flow, trunk: "t"), at: now, into: &output)
    react()
  }

  private mutating func call() {
    let leg = LegID.outbound(UInt64(legs.count) + 1)
    legs.append(leg)
    let peer = TrunkPeer(name: "t", domain: "127.0.0.2", flow: flow, credentials: Credentials(username: "u", password: "p"))
    agent.handle(
      .command(.invite(leg, OutboundInvite(trunk: peer, to: "+1555", from: "+1556", sdp: count % 3 == 2 ? nil : Self.sdp))),
      at: now, into: &output)
    react()
  }

  private mutating func react() {
    for message in output.messages { if let message = try? Message(message.bytes) { sent.append(message) } }
    if sent.count > 40 { sent.removeFirst(sent.count - 40) }
    let events = output.events
    output.removeAll()
    for event in events {
      let command: UserAgent.Command?
      switch event {
      case .inviteReceived(let leg, let invite):
        legs.append(leg)
        command = .respondProvisional(leg, code: 183, reason: nil, sdp: invite.sdp.map { _ in Self.sdp })
      case .reinviteReceived(let leg, _): command = .answerReinvite(leg, sdp: Self.sdp)
      case .offerWanted(let leg): command = .offer(leg, sdp: Self.sdp)
      case .answered(let leg, _): command = .acknowledge(leg, sdp: Self.sdp)
      case .referReceived(let leg, _): command = .acceptRefer(leg)
      default: command = nil
      }
      guard let command else { continue }
      agent.handle(.command(command), at: now, into: &output)
      react()
    }
  }

  private mutating func command(_ kind: UInt8) {
    guard !legs.isEmpty else { return }
    let leg = legs[Int(kind / 8) % legs.count]
    let commands: [UserAgent.Command] = [
      .answer(leg, sdp: Self.sdp), .bye(leg, nil), .cancel(leg, nil), .modify(leg), .ping(leg),
      .sendDigit(leg, "5", milliseconds: 100),
      .refer(leg, to: "sip:1@x", replaces: nil), .notifyRefer(leg, code: 200),
    ]
    agent.handle(.command(commands[count % commands.count]), at: now, into: &output)
    react()
  }

  // MARK: real messages

  private func invite() -> [UInt8] {
    message(
      "INVITE", callID: "in\(count)", from: "77", to: nil, sequence: 1,
      extra: "Supported: 100rel, timer\r\nSession-Expires: 90\r\n", body: Self.sdp)
  }

  private func inDialog(_ method: String) -> [UInt8] {
    guard let base = sent.last(where: { $0.callID != "last" }) else { return invite() }
    let (ours, theirs) =
      base.isRequest ? ((try? base.from)??.tag, (try? base.to)??.tag) : ((try? base.to)??.tag, (try? base.from)??.tag)
    let rack = base.responseSequence.map { "RAck: \($0) 1 INVITE\r\n" } ?? ""
    return message(
      method, callID: base.callID, from: theirs.map(base.text) ?? "peer", to: ours.map(base.text), sequence: count + 2,
      extra: rack,
      body: count % 2 == 0 ? Self.sdp : nil)
  }

  private func message(_ method: String, callID: String, from: String, to: String?, sequence: Int, extra: String, body: String?)
    -> [UInt8]
  {
    var text =
      "\(method) sip:+15551230001@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2:5070;branch=z9hG4bK\(method)\(count);rport\r\n"
    text += "From: <sip:+1444@127.0.0.2>;tag=\(from)\r\nTo: <sip:+15551230001@127.0.0.1>\(to.map { ";tag=" + $0 } ?? "")\r\n"
    text += "Call-ID: \(callID)\r\nCSeq: \(sequence) \(method)\r\nContact: <sip:c@127.0.0.2:5070>\r\n\(extra)"
    text += "Content-Type: application/sdp\r\nContent-Length: \(body?.utf8.count ?? 0)\r\n\r\n\(body ?? "")"
    return Array(text.utf8)
  }

  private func response(_ kind: Int) -> [UInt8] {
    guard let request = sent.last(where: { $0.isRequest && $0.method != .ack }) else { return invite() }
    let codes = [100, 180, 183, 200, 200, 302, 401, 422, 481, 486, 491, 500, 503]
    let code = codes[kind % codes.count]
    var text = "SIP/2.0 \(code) x\r\n"
    for field in request.fields where [.via, .from, .callID, .cseq].contains(field.name) {
      text += "\(field.name.text): \(request.text(field.value))\r\n"
    }
    let to = request.field(.to).map { request.text($0.value) } ?? ""
    text += "To: \(to)\((try? request.to)??.tag == nil ? ";tag=peer" : "")\r\nContact: <sip:c@127.0.0.2:5070>\r\n"
    if code == 401 { text += "WWW-Authenticate: Digest realm=\"r\", nonce=\"\(count)\", stale=true\r\n" }
    if code == 422 { text += "Min-SE: \(100 + count * 100)\r\n" }
    if code == 183 { text += "Require: 100rel\r\nRSeq: \(count)\r\n" }
    text +=
      "Session-Expires: 90;refresher=\(kind % 2 == 0 ? "uac" : "uas")\r\nAllow: UPDATE\r\nContent-Length: \(Self.sdp.utf8.count)\r\n\r\n\(Self.sdp)"
    return Array(text.utf8)
  }

  /// Puts the payload somewhere into a real message.
  private func mutated(_ message: [UInt8], _ payload: [UInt8], _ kind: UInt8) -> [UInt8] {
    guard !payload.isEmpty else { return message }
    var text = message
    let lines = message.indices.filter { $0 > 0 && message[$0] == 10 }
    guard !lines.isEmpty else { return payload }
    let line = lines[Int(payload[0]) % lines.count] + 1
    switch kind / 16 % 5 {
    case 0: text.insert(contentsOf: payload + [13, 10], at: min(line, text.count))  // a header line
    case 1: text.insert(contentsOf: payload, at: min(line, text.count))  // before a name: smuggling
    case 2:
      // a value, many times over: long tokens, CSeq and branch overflow
      let at = min(line + Int(payload[0] % 30), text.count)
      text.insert(contentsOf: [[UInt8]](repeating: payload, count: 1 + Int(payload[0])).joined(), at: at)
    case 3: text += payload  // Content-Length lies
    default:
      for (offset, byte) in payload.enumerated() where line + offset < text.count { text[line + offset] = byte }
    }
    return text
  }
}
