import TrunklineAppProtocol
import TrunklineAudioCodecs
public import TrunklineBytes
import TrunklineDTLS
import TrunklineICE
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

extension ClientMedia {
  /// Handles a request of the call; descriptions and failures are reported.
  public mutating func handle(_ order: ClientCall.MediaRequest, at now: Instant, into output: inout Output) {
    switch order {
    case .answer(let offer, let generation):
      self.generation = generation
      do throws(NegotiationError) {
        let (sdp, media) = try negotiation.answer(to: offer)
        use(media, now, &output)
        output.reports.append(.described(sdp: sdp, generation: generation))
      } catch {
        output.reports.append(.failed(.ice, "offer: \(error)"))
      }
    case .offer(let generation):
      if generation > 1 { restartICE(now, &output) }
      self.generation = generation
      output.reports.append(.described(sdp: negotiation.makeOffer(), generation: generation))
    case .apply(let answer, let generation):
      guard generation == self.generation else { return }
      do throws(NegotiationError) { use(try negotiation.apply(answer: answer), now, &output) } catch {
        output.reports.append(.failed(.ice, "answer: \(error)"))
      }
    case .activate(let isConnected): activate(isConnected, now)
    case .mute(let on):
      // silence of the room differs from the silence of a muted microphone
      if isMuted != on { silence?.removeAll() }
      isMuted = on
    case .close: close(now, &output)
    }
  }

  /// The host candidates of the next generation; the current ones stay in use until it has a pair.
  public mutating func use(localAddresses: [SocketAddress], nat64: NAT64? = nil) {
    (configuration.localAddresses, configuration.nat64) = (localAddresses, nat64)
  }

  private mutating func restartICE(_ now: Instant, _ output: inout Output) {
    renewRelays(now, &output)
    isRelayOnly = isNextRelayOnly && !configuration.relays.isEmpty
    isNextRelayOnly = false
    let (ufrag, password) = (random.text(8), random.text(24))
    agent.restart(ufrag: ufrag, password: password)
    for (index, address) in configuration.localAddresses.enumerated() where !isRelayOnly {
      agent.addLocal(Candidate(address, .host, preference: .max - UInt16(clamping: index)))
    }
    let ssrc = negotiation.endpoint.ssrc
    negotiation.endpoint = Self.endpoint(configuration, ufrag, password, random)
    negotiation.endpoint.ssrc = ssrc
  }

  /// The gateway's half: candidates to check, the certificate's fingerprint, and the codec.
  private mutating func use(_ media: AppMedia, _ now: Instant, _ output: inout Output) {
    remote = media
    agent.setRemote(ufrag: media.credentials.ufrag, password: media.credentials.password)
    var peers: [SocketAddress] = []
    for candidate in media.candidates {
      guard let address = candidate.address, candidate.transport.lowercased() == "udp" else { continue }
      let reachable = configuration.nat64?.address(of: address) ?? address
      peers.append(SocketAddress(address, candidate.port))
      // a relay has IPv4 where this network has none
      if reachable != address, !configuration.relays.isEmpty {
        agent.addRemote(Candidate(SocketAddress(address, candidate.port), .host, priority: candidate.priority))
      }
      agent.addRemote(Candidate(SocketAddress(reachable, candidate.port), .host, priority: candidate.priority))
    }
    prepareRelays(peers, now)
    let encoding = media.codec
    if self.encoding != encoding {
      self.encoding = encoding
      reception = ReceiverStatistics(clockRateHz: encoding.clockRateHz)
      digitReceiver = DigitReceiver(clockRateHz: encoding.clockRateHz)
    }
    if configuration.codesAudio, audioReceiver?.encoding != encoding {
      // The decoder handles changes of band within a stream.
      audioReceiver = try? AudioReceiver(encoding: encoding, band: configuration.band)
      encoder = nil
      silence = encoding == .opus ? CodedSilence() : nil
    }
    if configuration.codesAudio { useEncoder(encoding, media.opus) }
    if configuration.codesAudio, audioReceiver == nil || encoder == nil {
      output.reports.append(.failed(.device, "the \(encoding.name) codec did not start"))
    }
    handleTimeout(at: now, into: &output)
  }

  /// Sends in the band that the gateway requests, which knows the trunk.
  private mutating func useEncoder(_ encoding: AudioEncoding, _ asked: OpusParameters) {
    // As in the gateway: no copies until its reports show loss.
    var preferences = OpusPreferences(acceptsRepair: !asked.refusesInbandFEC, maximumBitrate: asked.maxAverageBitrate)
    preferences.maximumPlaybackRateHz = asked.maxPlaybackRateHz
    let band = min(configuration.band, encoding.band, encoding == .opus ? preferences.band : .wideband)
    guard let now = encoder?.band else {
      encoder = try? AudioEncoder(
        encoding: encoding, band: band, control: preferences.control(band), isConstantRate: asked.wantsConstantBitrate)
      return
    }
    guard now != band else { return }
    // Packets kept for repetition are of the previous band.
    silence?.removeAll()
    do throws(OpusError) { try encoder?.setBand(band, control: preferences.control(band)) } catch { encoder = nil }
  }

  private mutating func activate(_ isConnected: Bool, _ now: Instant) {
    if isConnected, !self.isConnected { silenceWatch.since = now }
    (isActive, self.isConnected) = (true, isConnected)
    if nextReport == nil { nextReport = now + Limits.reportInterval / 2 }
  }

  private mutating func close(_ now: Instant, _ output: inout Output) {
    isActive = false
    nextReport = nil
    if association != nil {
      association?.close()
      drainHandshake(&output)
      association = nil
    }
    closeRelays(now, &output)
  }
}
