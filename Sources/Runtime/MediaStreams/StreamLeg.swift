import CallModel
import Logging
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP

/// One call's stream: the WebSocket to its peer, and the two rings to the media thread. On the streams' thread.
final class StreamLeg {
  let request: StreamRequest
  private let loop: EventLoop
  private let statistics: StreamMetrics
  private let tls: TLSContext?
  private let onNews: (StreamNews) -> Void
  private var messages: StreamMessages
  private var playout: StreamPlayout
  private var link: StreamLink?
  private var addresses: [SocketAddress] = []
  private var why = "its name has no address"
  private let deadline: Instant
  private(set) var isOpen = false
  private(set) var isOver = false
  /// The band of the call's last frame.
  private var band = AudioBand.narrowband
  private let heardConverter = BandConverter()
  private let saidConverter = BandConverter()
  /// Ticks toward the trunk that found no audio, as counted at the last check.
  private var misses = 0

  init(
    _ request: StreamRequest, tls: TLSContext?, loop: EventLoop, statistics: StreamMetrics, onNews: @escaping (StreamNews) -> Void
  ) {
    (self.request, self.tls, self.loop, self.statistics, self.onNews) = (request, tls, loop, statistics, onNews)
    messages = StreamMessages(request)
    playout = StreamPlayout(samplesPerFrame: request.target.format.band.samplesPerTick)
    deadline = loop.now + Limits.opening
  }

  private var url: StreamURL { request.target.url }

  func begin(_ logger: Logger) {
    HostLookup.find(url.host, url.port, for: .streams, by: deadline, loop: loop, logger: logger) { [weak self] found in
      self?.found(found)
    }
  }

  /// The allowed addresses are connected to as resolved: the name is not resolved again.
  private func found(_ found: [SocketAddress]) {
    addresses = found.filter { request.target.reach.allows($0.ip) }
    if addresses.isEmpty, !found.isEmpty { why = "its name leads to no public address, and to none of routes.stream_networks" }
    connect()
  }

  /// Connects to the peer's next address, or ends the stream.
  private func connect() {
    guard !isOver else { return }
    guard !addresses.isEmpty else { return refuse() }
    let address = addresses.removeFirst()
    let key = Self.key()
    let request = UpgradeAnswer.request(
      host: url.hostField, path: url.path, key: key, token: request.target.token?.exposed)
    do throws(SystemError) {
      var session: TLSSession?
      if let tls {
        session = TLSSession(tls, isServer: false, host: url.host, verifying: TLSPeer(host: url.host))
        guard session != nil else { return refuse() }
      }
      link = try StreamLink(address, request: request, key: key, tls: session, loop: loop) { [weak self] in self?.handle($0) }
    } catch {
      why = "\(error)"
      connect()
    }
  }

  private static func key() -> String {
    Base64Text.encode((0..<16).map { _ in UInt8.random(in: 0...255) })
  }

  private func handle(_ event: StreamLink.Event) {
    switch event {
    case .opened:
      isOpen = true
      link?.send(.text, messages.connected())
      link?.send(.text, messages.start())
      link?.flush()
      statistics.open.add(1)
      onNews(.opened(request.call))
    case .text(let text): handle(messages.read(text: text))
    case .binary(let bytes): handle(messages.read(binary: bytes))
    case .closed(let why, let isByPeer):
      link = nil
      self.why = why
      if !isOpen { return connect() }
      end(isByPeer ? .peer : .lost, why)
    }
  }

  private func handle(_ received: StreamMessages.Received) {
    lookForMisses()
    switch received {
    case .audio(let samples): playout.add(samples, ahead: request.stream.said.count, at: loop.now)
    case .mark(let name): playout.add(mark: name)
    case .clear: for name in playout.clear() { link?.send(.text, messages.mark(name)) }
    case .other: break
    case .fault(let fault): statistics.faults[fault].increment()
    }
    pump()
  }

  /// Moves audio in both directions as far as possible; every few milliseconds.
  func pump() {
    guard isOpen, !isOver else { return }
    readFrames()
    say()
    link?.flush()
    if let link, link.waiting > 0, loop.now - link.lastAcceptedAt >= Limits.unread { end(.lost, "the peer does not read") }
  }

  func look() {
    if !isOpen, !isOver, loop.now >= deadline {
      why = "no stream within \(Limits.opening.components.seconds) s"
      refuse()
    }
  }

  private func readFrames() {
    var room = [Int16](repeating: 0, count: AudioBand.wideband.samplesPerTick)
    let wanted = request.target.format.band
    var came: (TappedFrame, Int)?
    while true {
      came = nil
      room.withUnsafeMutableBufferPointer { room in
        guard let base = room.baseAddress else { return }
        request.stream.heard.pop { frame, samples in
          came = (
            frame, heardConverter.convert(samples, frame.band.samplesPerTick, from: frame.band, to: wanted, into: base)
          )
        }
      }
      guard let (frame, count) = came else { return }
      band = frame.band
      guard let link, link.waiting < Limits.unsentBytes else {
        statistics.unread.increment()
        continue
      }
      let (isText, bytes) = messages.media(Array(room[..<count]))
      link.send(isText ? .text : .binary, bytes)
    }
  }

  private func lookForMisses() {
    let ring = request.stream.said
    let now = ring.misses
    if now != misses, ring.count == 0 { playout.ranDry(at: loop.now) }
    misses = now
  }

  private func say() {
    lookForMisses()
    let ring = request.stream.said
    while ring.count < Limits.framesAhead {
      let (frame, marks) = playout.next(isStarving: ring.count == 0, at: loop.now)
      for mark in marks { link?.send(.text, messages.mark(mark)) }
      guard let frame else { break }
      put(frame, into: ring)
    }
  }

  private func put(_ frame: [Int16], into ring: AudioTap) {
    var out = [Int16](repeating: 0, count: AudioBand.wideband.samplesPerTick)
    _ = out.withUnsafeMutableBufferPointer { room in
      frame.withUnsafeBufferPointer { frame in
        guard let base = room.baseAddress, let samples = frame.baseAddress else { return 0 }
        return saidConverter.convert(samples, frame.count, from: request.target.format.band, to: band, into: base)
      }
    }
    ring.put(TappedFrame(.appToTrunk, band, at: loop.now), out)
  }

  func report(_ digit: Character) {
    guard isOpen, !isOver else { return }
    link?.send(.text, messages.digit(digit))
    link?.flush()
  }

  /// The call is over: the peer receives `stop`.
  func close() {
    guard !isOver else { return }
    if isOpen {
      link?.send(.text, messages.stop())
      finish(.call)
    } else {
      isOver = true
    }
    link?.close()
    link = nil
  }

  private func refuse() {
    guard !isOver else { return }
    isOver = true
    statistics.streams[.refused].increment()
    link?.close()
    link = nil
    onNews(.refused(request.call, why))
  }

  private func end(_ end: StreamMetrics.End, _ why: String) {
    guard !isOver else { return }
    finish(end)
    link?.close()
    link = nil
    onNews(.ended(request.call, why, isByPeer: end == .peer))
  }

  private func finish(_ end: StreamMetrics.End) {
    isOver = true
    statistics.streams[end].increment()
    statistics.open.add(-1)
    statistics.tooFast.increment(by: UInt64(playout.droppedSamples / playout.samplesPerFrame))
    statistics.marks.increment(by: UInt64(playout.droppedMarks))
    statistics.unread.increment(by: UInt64(request.stream.heard.dropped))
  }
}
