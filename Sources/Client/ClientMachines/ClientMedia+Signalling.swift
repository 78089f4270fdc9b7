import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSDP

extension ClientMedia {
  /// Handles a request of the call; descriptions and failures are reported.
  public mutating func handle(_ order: ClientCall.MediaRequest, at now: Instant, into output: inout Output) {
    switch order {
    case .answer(let offer, let generation):
      path.begin(generation)
      do throws(NegotiationError) {
        let (sdp, media) = try negotiation.answer(to: offer)
        use(media, now, &output)
        output.reports.append(.described(sdp: sdp, generation: generation))
      } catch {
        output.reports.append(.failed(.ice, "offer: \(error)"))
      }
    case .offer(let generation):
      if generation > 1 { restartICE(now, &output) }
      path.begin(generation)
      output.reports.append(.described(sdp: negotiation.makeOffer(), generation: generation))
    case .apply(let answer, let generation):
      guard generation == path.number else { return }
      do throws(NegotiationError) { use(try negotiation.apply(answer: answer), now, &output) } catch {
        output.reports.append(.failed(.ice, "answer: \(error)"))
      }
    case .activate(let isConnected):
      if activation.activate(isConnected: isConnected) { silence.connected(at: now) }
      reports.begin(at: now)
    case .mute(let on): captured.mute(on)
    case .close: close(now, &output)
    }
  }

  private mutating func restartICE(_ now: Instant, _ output: inout Output) {
    relays.renew(mediaUses: agent.nominatedPair?.local, at: now, into: &output)
    path.restart(hasRelays: !configuration.relays.isEmpty)
    let (ufrag, password) = (random.text(8), random.text(24))
    agent.restart(ufrag: ufrag, password: password)
    for (index, address) in configuration.localAddresses.enumerated() where !path.isRelayOnly {
      agent.addLocal(Candidate(address, .host, preference: .max - UInt16(clamping: index)))
    }
    negotiation.endpoint = Self.endpoint(configuration, ufrag, password, random)
    negotiation.endpoint.ssrc = sent.ssrc
  }

  /// The gateway's half: candidates to check, the certificate's fingerprint, and the codec.
  private mutating func use(_ media: AppMedia, _ now: Instant, _ output: inout Output) {
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
    sent.agree(media)
    received.agree(media)
    if configuration.codesAudio {
      let isNew = played.use(media.codec)
      let isCoding = captured.use(media.codec, isNew: isNew, media.opus)
      if !isCoding || !played.isReady {
        output.reports.append(.failed(.device, "the \(media.codec.name) codec did not start"))
      }
    }
    handleTimeout(at: now, into: &output)
  }

  private mutating func close(_ now: Instant, _ output: inout Output) {
    activation.close()
    reports.stop()
    send(handshake.close(), &output)
    relays.close(at: now, into: &output)
  }
}
