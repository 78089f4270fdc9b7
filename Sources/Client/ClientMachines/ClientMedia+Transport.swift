import AppProtocol
public import Bytes
import DTLS
import ICE
import RTP
import SDP
import SRTP

extension ClientMedia {
  /// When `handleTimeout` is due: ICE checks, DTLS retransmission.
  public var nextDeadline: Instant? {
    let deadlines = [remote == nil ? nil : agent.nextDeadline, handshakeDeadline, nextReport].compactMap { $0 }
    return deadlines.min()
  }

  public mutating func handleTimeout(at now: Instant, into output: inout Output) {
    if remote != nil, agent.nextDeadline <= now { agent.handleTimeout(at: now, into: &iceOutput) }
    takeICE(now, &output)
    if let due = handshakeDeadline, due <= now {
      association?.handleTimeout()
      advanceHandshake(now, &output)
    }
    if let due = nextReport, due <= now { sendReport(now, &output) }
  }

  /// Takes one datagram. Only STUN of the peer, DTLS from the nominated pair and authentic SRTP have an effect.
  public mutating func receive(
    _ bytes: [UInt8], from source: SocketAddress, to local: SocketAddress, at now: Instant, into output: inout Output
  ) {
    switch PacketKind(bytes.span) {
    case .stun:
      bytes.withUnsafeBytes { agent.handle($0, from: source, to: local, at: now, into: &iceOutput) }
      takeICE(now, &output)
    case .dtls:
      guard association != nil else { return }
      bytes.withUnsafeBytes { association?.receive($0) }
      advanceHandshake(now, &output)
    case .rtp: receiveAudio(bytes, now, &output)
    case .rtcp:
      var packet = bytes
      var count = packet.count
      packet.withUnsafeMutableBytes { buffer in
        do throws(SRTPError) { try receiver?.unprotectRTCP(buffer, count: &count) } catch {
          statistics.refusedPackets += 1
          count = 0
        }
      }
      guard receiver != nil, count <= packet.count else { return }
      packet.removeLast(packet.count - count)
      receiveReports(packet.span, now)
    case .zrtp, .turnChannel, .unknown: break
    }
  }

  private mutating func takeICE(_ now: Instant, _ output: inout Output) {
    let (datagrams, events) = (iceOutput.datagrams, iceOutput.events)
    iceOutput.datagrams.removeAll(keepingCapacity: true)
    iceOutput.events.removeAll(keepingCapacity: true)
    for datagram in datagrams {
      output.datagrams.append(.init(bytes: datagram.bytes, local: datagram.pair.local, remote: datagram.pair.remote))
    }
    for event in events {
      switch event {
      case .nominated: startHandshake(now, &output)
      case .failed, .consentLost: output.reports.append(.failed(.ice, "no pair of candidates works"))
      case .consentRegained: break
      }
    }
    if agent.state == .connected { tellConnected(&output) }
  }

  private mutating func startHandshake(_ now: Instant, _ output: inout Output) {
    guard association == nil, keys == nil, let remote else { return }
    guard let fingerprint = DTLSFingerprint(algorithm: remote.fingerprint.algorithm.rawValue, bytes: remote.fingerprint.bytes)
    else {
      return output.reports.append(.failed(.dtls, "the fingerprint's algorithm is not supported"))
    }
    do throws(DTLSFailure) {
      association = try DTLSAssociation(.client, identity: configuration.identity, remoteFingerprint: fingerprint)
      association?.start()
      advanceHandshake(now, &output)
    } catch {
      output.reports.append(.failed(.dtls, "\(error)"))
    }
  }

  private mutating func advanceHandshake(_ now: Instant, _ output: inout Output) {
    drainHandshake(&output)
    handshakeDeadline = association?.timeout.map { now + $0 } ?? nil
    guard let state = association?.state else { return }
    switch state {
    case .established: install(&output)
    case .failed(let failure):
      association = nil
      output.reports.append(.failed(.dtls, "\(failure)"))
    case .handshaking, .unverified, .closed: break
    }
  }

  mutating func drainHandshake(_ output: inout Output) {
    guard let pair = agent.nominatedPair else { return }
    association?.drain { output.datagrams.append(.init(bytes: Array($0), local: pair.local, remote: pair.remote)) }
  }

  private mutating func install(_ output: inout Output) {
    guard keys == nil, let material = association?.keyMaterial else { return }
    keys = material
    do throws(SRTPError) {
      sender = try SRTPSender(material.profile, material.client)
      receiver = try SRTPReceiver(material.profile, material.server)
    } catch {
      return output.reports.append(.failed(.dtls, "\(error)"))
    }
    tellConnected(&output)
  }

  private mutating func tellConnected(_ output: inout Output) {
    guard let keys, isConnectedTold < generation, agent.state == .connected else { return }
    isConnectedTold = generation
    let kinds = agent.nominatedKinds
    let trip = agent.roundTrip.map { Double($0.nanoseconds) / 1e6 }
    statistics.roundTripMilliseconds = trip
    output.reports.append(
      .connected(
        generation: generation, pair: MediaReady.Pair(local: kinds?.local.rawValue, remote: kinds?.remote.rawValue),
        roundTripMilliseconds: trip, profile: keys.profile.name))
  }
}
