import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineDTLS
import TrunklineICE
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

extension ClientMedia {
  // `mutating`: with a borrowed large noncopyable struct the compiler takes seconds (swiftlang/swift #92103, contributing.md).
  /// When `handleTimeout` is due: ICE checks, DTLS retransmission.
  public var nextDeadline: Instant? {
    mutating get {
      var due = remote == nil ? nil : agent.nextDeadline
      if let handshakeDeadline { due = min(due ?? handshakeDeadline, handshakeDeadline) }
      if let nextReport { due = min(due ?? nextReport, nextReport) }
      if let relayDeadline { due = min(due ?? relayDeadline, relayDeadline) }
      if let silenceDeadline { due = min(due ?? silenceDeadline, silenceDeadline) }
      return due
    }
  }

  public mutating func handleTimeout(at now: Instant, into output: inout Output) {
    watchSilence(now, &output)
    if remote != nil, agent.nextDeadline <= now { agent.handleTimeout(at: now, into: &iceOutput) }
    handleICE(now, &output)
    if let due = handshakeDeadline, due <= now {
      association?.handleTimeout()
      advanceHandshake(now, &output)
    }
    if let due = nextReport, due <= now { sendReport(now, &output) }
    if let due = relayDeadline, due <= now { relayTimers(now, &output) }
  }

  /// Handles one datagram and decrypts it in place. Only STUN of the peer, DTLS from the nominated pair and authentic SRTP have
  /// an effect.
  public mutating func receive(
    _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, to local: SocketAddress, at now: Instant,
    into output: inout Output
  ) {
    let bytes = UnsafeRawBufferPointer(datagram)
    switch PacketKind(Span<UInt8>(_unsafeBytes: bytes)) {
    case .stun:
      let consentedAt = agent.lastConsentAt
      agent.handle(bytes, from: source, to: local, at: now, into: &iceOutput)
      if agent.lastConsentAt != consentedAt { packetReceived(now, &output) }
      handleICE(now, &output)
    case .dtls:
      guard association != nil else { return }
      association?.receive(bytes)
      advanceHandshake(now, &output)
    case .rtp: receiveAudio(datagram, now, &output)
    case .rtcp:
      guard receiver != nil else { return }
      var count = datagram.count
      do throws(SRTPError) { try receiver?.unprotectRTCP(datagram, count: &count) } catch { return refuse() }
      guard count <= datagram.count else { return refuse() }
      packetReceived(now, &output)
      receiveReports(Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(rebasing: datagram[..<count])), now)
    case .zrtp, .turnChannel, .unknown: break
    }
  }

  mutating func handleICE(_ now: Instant, _ output: inout Output) {
    let (datagrams, events) = (iceOutput.datagrams, iceOutput.events)
    iceOutput.datagrams.removeAll(keepingCapacity: true)
    iceOutput.events.removeAll(keepingCapacity: true)
    for datagram in datagrams {
      datagram.bytes.withUnsafeBytes { emit($0, from: datagram.pair.local, to: datagram.pair.remote, &output) }
    }
    for event in events {
      switch event {
      case .nominated(let pair):
        releaseUnusedRelays(pair, now, &output)
        startHandshake(now, &output)
      case .failed, .consentLost: failed(.ice, "no pair of candidates works", &output)
      case .consentRegained: break
      }
    }
    if agent.state == .connected { reportConnected(&output) }
  }

  private mutating func startHandshake(_ now: Instant, _ output: inout Output) {
    guard association == nil, keys == nil, let remote else { return }
    guard let fingerprint = DTLSFingerprint(algorithm: remote.fingerprint.algorithm.rawValue, bytes: remote.fingerprint.bytes)
    else {
      return failed(.dtls, "the fingerprint's algorithm is not supported", &output)
    }
    do throws(DTLSFailure) {
      association = try DTLSAssociation(.client, identity: configuration.identity, remoteFingerprint: fingerprint)
      association?.start()
      advanceHandshake(now, &output)
    } catch {
      failed(.dtls, "\(error)", &output)
    }
  }

  private mutating func advanceHandshake(_ now: Instant, _ output: inout Output) {
    drainHandshake(&output)
    // OpenSSL has a clock of its own, and rounds its last 15 ms down to nothing
    handshakeDeadline = association?.timeout.map { now + max($0, Limits.handshakePause) } ?? nil
    guard let state = association?.state else { return }
    switch state {
    case .established: install(&output)
    case .failed(let failure):
      association = nil
      failed(.dtls, "\(failure)", &output)
    case .handshaking, .unverified, .closed: break
    }
  }

  mutating func drainHandshake(_ output: inout Output) {
    guard let pair = agent.nominatedPair else { return }
    var flight: [[UInt8]] = []
    association?.drain { flight.append(Array($0)) }
    for datagram in flight {
      datagram.withUnsafeBytes { emit($0, from: pair.local, to: pair.remote, &output) }
    }
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
    reportConnected(&output)
  }

  private mutating func reportConnected(_ output: inout Output) {
    guard let keys, connectedReportedGeneration < generation, agent.state == .connected else { return }
    (connectedReportedGeneration, isNextRelayOnly) = (generation, false)
    let kinds = agent.nominatedKinds
    let trip = agent.roundTrip.map { Double($0.nanoseconds) / 1e6 }
    statistics.roundTripMilliseconds = trip
    output.reports.append(
      .connected(
        generation: generation, pair: MediaReady.Pair(local: kinds?.local.rawValue, remote: kinds?.remote.rawValue),
        roundTripMilliseconds: trip, profile: keys.profile.name))
  }
}
