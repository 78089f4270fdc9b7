import TrunklineBytes
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP
import TrunklineSTUN
import TrunklineTURN

@Sendable func fuzzSDP(_ bytes: [UInt8]) {
  guard let description = try? SessionDescription(parsing: bytes) else { return }
  let written = description.text
  precondition((try? SessionDescription(parsing: written)) != nil, "what we write must be readable")
  let text = String(decoding: bytes, as: UTF8.self)
  for protection in [TrunkNegotiation.Protection.optional(.seeded(1)), .required(.seeded(2))] {
    var trunk = TrunkNegotiation(local: SocketAddress(.loopback, 4_000), sessionID: 1, protection: protection)
    _ = try? trunk.answer(to: text)
    _ = trunk.makeOffer()
    _ = try? trunk.apply(answer: text)
  }
}

private let integrity = IntegrityKey(password: "VOkJxbRl1RmTxUk/WvJxBt")

@Sendable func fuzzSTUN(_ bytes: [UInt8]) {
  bytes.withUnsafeBytes { datagram in
    guard let message = try? STUNMessage(datagram) else { return }
    _ = message.hasIntegrity(integrity)
    _ = message.username?.count
    _ = message.recipientUfrag?.count
  }
}

/// A server's messages, cut as the input says: the first octet of a piece is its length, 0 a step of time. Answers get the
/// transaction of the last request.
@Sendable func fuzzTURN(_ bytes: [UInt8]) {
  let gateway = SocketAddress(IPAddress(198, 51, 100, 7), 40_000)
  let isStream = bytes.first.map { $0 % 2 == 1 } ?? false
  var client = TURNClient(username: "u", password: Redacted("p"), isStream: isStream, random: .seeded(1))
  var (framing, output, now) = (TURNFraming(), TURNClient.Output(), Instant.zero)
  client.permit(gateway.ip, at: now, into: &output)
  client.start(at: now, into: &output)
  var (rest, asked) = (bytes.dropFirst(), [UInt8]())
  func take(_ message: [UInt8]) {
    let payload = message.withUnsafeBytes { client.receive($0, at: now, into: &output) }
    if let payload { precondition(payload.octets.upperBound <= message.count, "a payload stands in its message") }
  }
  while let count = rest.popFirst() {
    asked = output.messages.last ?? asked
    (output.messages, output.events) = ([], [])
    if count == 0 {
      now = now + .seconds(30)
      client.handleTimeout(at: now, into: &output)
      client.bind(gateway, at: now, into: &output)
      continue
    }
    var piece = Array(rest.prefix(Int(count)))
    rest = rest.dropFirst(Int(count))
    if piece.count >= 20, piece[0] < 0x40, asked.count >= 20 { piece.replaceSubrange(4..<20, with: asked[4..<20]) }
    guard isStream else {
      take(piece)
      continue
    }
    guard (try? framing.append(piece)) != nil else { return }
    while let message = try? framing.next() { take(message) }
  }
  client.close(at: now, into: &output)
}

@Sendable func fuzzRTP(_ bytes: [UInt8]) {
  let packet = bytes.span
  _ = PacketKind(packet)
  guard let header = try? RTPHeader(parsing: packet) else { return }
  let payload = header.payload(of: packet)
  precondition(payload.count <= bytes.count, "a payload is never larger than its packet")
  for index in 0..<header.csrcCount { _ = header.contributingSource(index, of: packet) }
  _ = TelephoneEvent(parsing: payload)
}

@Sendable func fuzzRTCP(_ bytes: [UInt8]) {
  var reader = RTCPReader()
  let datagram = bytes.span
  while let packet = try? reader.next(in: datagram) {
    switch packet {
    case .senderReport(_, _, let blocks), .receiverReport(_, let blocks):
      for index in 0..<blocks.count { _ = blocks.block(index, in: datagram) }
    default: break
    }
  }
}

/// The first byte chooses the profile and RTP or RTCP; random bytes must neither pass authentication nor be learnt from.
@Sendable func fuzzSRTP(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let profile = SRTPProfile.allCases[Int(first >> 1) % SRTPProfile.allCases.count]
  let master = SRTPMasterKey(
    key: [UInt8](repeating: 7, count: profile.keyBytes), salt: [UInt8](repeating: 9, count: profile.saltBytes))
  guard var receiver = try? SRTPReceiver(profile, master) else { return }
  var packet = Array(bytes.dropFirst())
  packet.withUnsafeMutableBytes { buffer in
    var count = buffer.count
    if first & 1 == 0 {
      _ = try? receiver.unprotect(buffer, count: &count)
    } else {
      try? receiver.unprotectRTCP(buffer, count: &count)
    }
    precondition(count <= buffer.count, "unprotect never grows a packet")
  }
}

/// One stream through an attacker: packets are protected in order, then delivered, dropped, repeated, reordered or damaged as the
/// bytes say. A packet that passes must be one that was sent, and none passes twice.
@Sendable func fuzzSRTPStream(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let profile = SRTPProfile.allCases[Int(first) % SRTPProfile.allCases.count]
  let master = SRTPMasterKey(
    key: [UInt8](repeating: 7, count: profile.keyBytes), salt: [UInt8](repeating: 9, count: profile.saltBytes))
  guard var sender = try? SRTPSender(profile, master), var receiver = try? SRTPReceiver(profile, master) else { return }
  var input = FuzzInput(bytes)
  var index: UInt64 = 65_000
  var sent: [(index: UInt64, plain: [UInt8], sealed: [UInt8])] = []
  var passed: Set<UInt64> = []
  while !input.isEmpty {
    let what = input.byte()
    if what & 1 == 0 || sent.isEmpty {
      index += 1 + UInt64(what >> 1) * UInt64(what >> 1)
      let number = [UInt8(truncatingIfNeeded: index >> 8), UInt8(truncatingIfNeeded: index)]
      let header: [UInt8] = [0x80, 0] + number + [0, 0, 0, 0, 0, 0, 0, 1]
      let plain = header + input.take(Int(what & 15))
      var packet = plain + [UInt8](repeating: 0, count: 32)
      var count = plain.count
      packet.withUnsafeMutableBytes { try? sender.protect($0, count: &count) }
      sent.append((index, plain, Array(packet[..<count])))
      if sent.count > 64 { sent.removeFirst() }
    } else {
      let chosen = sent[Int(what >> 1) % sent.count]
      var packet = chosen.sealed
      let damage = input.byte()
      if damage & 1 == 1 { packet[Int(input.byte()) % packet.count] ^= damage }
      var count = packet.count
      let read = packet.withUnsafeMutableBytes { try? receiver.unprotect($0, count: &count) }
      guard read != nil else { continue }
      precondition(damage & 1 == 0, "a damaged packet passed")
      precondition(Array(packet[..<count]) == chosen.plain, "what passes is what was sent")
      precondition(passed.insert(chosen.index).inserted, "nothing passes twice")
    }
  }
}
