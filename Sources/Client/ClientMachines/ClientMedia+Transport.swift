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
      var due = negotiation.agreed == nil ? nil : agent.nextDeadline
      func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
      consider(handshake.deadline)
      consider(reports.nextDue)
      consider(relays.nextDeadline)
      if watchesSilence { consider(silence.deadline) }
      return due
    }
  }

  public mutating func handleTimeout(at now: Instant, into output: inout Output) {
    watchSilence(now, &output)
    if negotiation.agreed != nil, agent.nextDeadline <= now { agent.handleTimeout(at: now, into: &iceOutput) }
    handleICE(now, &output)
    if handshake.handleTimeout(at: now) { advanceHandshake(now, &output) }
    if reports.isDue(at: now, random: random) { sendReport(now, &output) }
    if let due = relays.nextDeadline, due <= now { relayTimers(now, &output) }
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
      if handshake.receive(bytes) { advanceHandshake(now, &output) }
    case .rtp: receiveAudio(datagram, now, &output)
    case .rtcp:
      var count = datagram.count
      guard keys.unprotectRTCP(datagram, count: &count) else { return }
      packetReceived(now, &output)
      receiveReports(Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(rebasing: datagram[..<count])), now)
    case .zrtp, .turnChannel, .unknown: break
    }
  }

  /// Candidates were added or removed.
  mutating func checkPairs(_ now: Instant, _ output: inout Output) {
    if negotiation.agreed != nil { agent.handleTimeout(at: now, into: &iceOutput) }
    handleICE(now, &output)
  }

  private mutating func handleICE(_ now: Instant, _ output: inout Output) {
    let (datagrams, events) = (iceOutput.datagrams, iceOutput.events)
    iceOutput.datagrams.removeAll(keepingCapacity: true)
    iceOutput.events.removeAll(keepingCapacity: true)
    for datagram in datagrams {
      datagram.bytes.withUnsafeBytes { relays.send($0, from: datagram.pair.local, to: datagram.pair.remote, into: &output) }
    }
    for event in events {
      switch event {
      case .nominated(let pair):
        relays.nominated(pair, isConnected: agent.state == .connected, at: now, into: &output)
        startHandshake(now, &output)
      case .failed, .consentLost: failed(.ice, "no pair of candidates works", &output)
      case .consentRegained: break
      }
    }
    if agent.state == .connected { reportConnected(&output) }
  }

  /// The path has failed: the next one may be another kind (`PathGeneration`).
  mutating func failed(_ stage: MediaFail.Stage, _ why: String, _ output: inout Output) {
    path.failed()
    output.reports.append(.failed(stage, why))
  }

  private mutating func reportConnected(_ output: inout Output) {
    guard let profile = keys.profile, agent.state == .connected, path.connected() else { return }
    let kinds = agent.nominatedKinds
    let trip = agent.roundTrip.map { Double($0.nanoseconds) / 1e6 }
    reports.connected(roundTripMilliseconds: trip)
    output.reports.append(
      .connected(
        generation: path.number, pair: MediaReady.Pair(local: kinds?.local.rawValue, remote: kinds?.remote.rawValue),
        roundTripMilliseconds: trip, profile: profile.name))
  }

  // MARK: DTLS

  private mutating func startHandshake(_ now: Instant, _ output: inout Output) {
    guard !keys.isInstalled, !handshake.isRunning, let fingerprint = negotiation.agreed?.fingerprint else { return }
    guard let fingerprint = DTLSFingerprint(algorithm: fingerprint.algorithm.rawValue, bytes: fingerprint.bytes) else {
      return failed(.dtls, "the fingerprint's algorithm is not supported", &output)
    }
    do throws(DTLSFailure) {
      try handshake.start(identity: configuration.identity, remote: fingerprint)
      advanceHandshake(now, &output)
    } catch {
      failed(.dtls, "\(error)", &output)
    }
  }

  private mutating func advanceHandshake(_ now: Instant, _ output: inout Output) {
    if agent.nominatedPair != nil { send(handshake.drain(), &output) }
    switch handshake.advance(at: now) {
    case .pending: break
    case .failed(let failure): failed(.dtls, "\(failure)", &output)
    case .established(let material):
      do throws(SRTPError) {
        if try keys.install(material) { reportConnected(&output) }
      } catch {
        output.reports.append(.failed(.dtls, "\(error)"))
      }
    }
  }

  /// Sends datagrams of the handshake; without a path they are lost.
  mutating func send(_ flight: [[UInt8]], _ output: inout Output) {
    guard let pair = agent.nominatedPair else { return }
    for datagram in flight {
      datagram.withUnsafeBytes { relays.send($0, from: pair.local, to: pair.remote, into: &output) }
    }
  }

  // MARK: silence

  /// An authentic packet, or an answer to a check, was received.
  mutating func packetReceived(_ now: Instant, isAudio: Bool = false, _ output: inout Output) {
    let ended = silence.received(at: now, isAudio: isAudio)
    guard ended != .receiving else { return }
    if ended == .reported { output.reports.append(.silence(.ended)) }
    agent.endProbe()
  }

  private var watchesSilence: Bool {
    mutating get { activation.isActive && activation.isConnected && path.hasConnected }
  }

  private mutating func watchSilence(_ now: Instant, _ output: inout Output) {
    guard watchesSilence else { return }
    switch silence.due(at: now) {
    case .probing?:
      agent.probe(at: now)
      output.reports.append(.silence(.began))
    case .reported?: output.reports.append(.silence(.stays))
    case .receiving?, nil: break
    }
  }
}
