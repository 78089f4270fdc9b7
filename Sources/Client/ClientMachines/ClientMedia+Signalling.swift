import AppProtocol
import AudioCodecs
public import Bytes
import DTLS
import ICE
import MediaSession
import RTP
import SDP
import SRTP

extension ClientMedia {
  /// Does what the call asks; descriptions and failures come as reports.
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
      // a pause of the room is not the silence of the muted
      if isMuted != on { silence?.removeAll() }
      isMuted = on
    case .close: close(now, &output)
    }
  }

  /// The host candidates of the next generation; those of this one serve until it has its pair.
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

  /// The gateway's half: candidates to check, whose certificate is right, and the codec.
  private mutating func use(_ media: AppMedia, _ now: Instant, _ output: inout Output) {
    remote = media
    agent.setRemote(ufrag: media.credentials.ufrag, password: media.credentials.password)
    var peers: [SocketAddress] = []
    for candidate in media.candidates {
      guard let address = candidate.address, candidate.transport.lowercased() == "udp" else { continue }
      let reachable = configuration.nat64?.address(of: address) ?? address
      peers.append(SocketAddress(address, candidate.port))
      // a relay has IPv4 where we have not
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
      // What is narrow or wide within a stream is the decoder's affair.
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

  /// What goes is as wide as the gateway asks for, which knows the trunk.
  private mutating func useEncoder(_ encoding: AudioEncoding, _ asked: OpusParameters) {
    // The gateway's own rule: no copies until its reports tell of loss.
    var preferences = OpusPreferences(acceptsRepair: !asked.refusesInbandFEC, maximumBitrate: asked.maxAverageBitrate)
    preferences.maximumPlaybackRateHz = asked.maxPlaybackRateHz
    let band = min(configuration.band, encoding.band, encoding == .opus ? preferences.band : .wideband)
    guard let now = encoder?.band else {
      encoder = try? AudioEncoder(
        encoding: encoding, band: band, control: preferences.control(band), isConstantRate: asked.wantsConstantBitrate)
      return
    }
    guard now != band else { return }
    // Packets that are sent again would be of the band before.
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
