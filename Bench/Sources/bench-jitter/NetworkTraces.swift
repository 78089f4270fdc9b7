import TrunklineBytes

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A network made from a seed: when each 20 ms packet was sent and when it came, in milliseconds; nil when it was lost. The same
/// seed gives the same trace everywhere. Used by the tests of the jitter buffer and, by a link, by the bench.
struct NetworkTrace {
  enum Kind: String, CaseIterable {
    /// A good line: a few milliseconds of jitter.
    case quiet
    /// A vehicle on 5G: some jitter, hand-overs that hold packets back for 50…300 ms, now and then an outage.
    case drive
    /// Mobile data with a deep queue: delay wanders by tens to hundreds of milliseconds and packets come in bunches.
    case cellular
    /// RTP between carriers: hardly any jitter, now and then a hiccup, a swap or a batch.
    case carrier
    /// Independent loss of 3 %.
    case loss
    /// Loss in bursts of several packets (two states).
    case burst
    /// 3 % loss, 2 % reordering, spikes.
    case spikes
    /// The route's delay steps by 180 ms every 10 s.
    case steps
    /// Nothing comes for 3 s, then everything at once.
    case stall
    /// The sender's clock runs 500 ppm slow or fast.
    case skew
  }

  let name: String
  var packets: [(sent: Double, arrived: Double?)]

  /// Packets in the order they came.
  var arrivals: [(at: Double, number: Int)] {
    packets.enumerated().compactMap { number, packet in packet.arrived.map { (at: $0, number: number) } }
      .sorted { ($0.at, $0.number) < ($1.at, $1.number) }
  }

  static func made(_ kind: Kind, seed: UInt64) -> NetworkTrace {
    var network = Network(seed: seed &* 977 &+ UInt64(kind.rawValue.utf8.reduce(0) { $0 &* 31 &+ Int($1) }))
    let packets =
      switch kind {
      case .quiet: network.quiet()
      case .drive: network.drive()
      case .cellular: network.cellular()
      case .carrier: network.carrier()
      case .loss: network.lossy(meanBurst: 1)
      case .burst: network.lossy(meanBurst: 3)
      case .spikes: network.spikes()
      case .steps: network.steps()
      case .stall: network.stall()
      case .skew: network.skew(seed % 2 == 0 ? 500e-6 : -500e-6)
      }
    // To the microsecond, so that a mathematical library's last bit changes nothing.
    let rounded = packets.map { packet in (packet.sent, packet.arrived.map { ($0 * 1000).rounded() / 1000 }) }
    return NetworkTrace(name: "\(kind.rawValue) \(seed)", packets: rounded)
  }
}

/// Makes the delays; each kind draws its own parameters from the seed, so that no two seeds are alike.
private struct Network {
  typealias Packets = [(sent: Double, arrived: Double?)]
  var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  mutating func unit() -> Double { Double(random.next() >> 11) / Double(1 << 53) }
  mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * unit() }
  mutating func exponential(_ mean: Double) -> Double { -log(1 - unit() * 0.999_999) * mean }
  /// Sum of twelve: a normal deviate for our purpose.
  mutating func normal() -> Double { (0..<12).reduce(-6) { sum, _ in sum + unit() } }

  /// `seconds` of packets whose delays `delay` gives; nil is a loss. A queue never lets a packet overtake unless `reorders`.
  mutating func packets(seconds: Int, reorders: Bool, _ delay: (inout Network, Double) -> Double?) -> Packets {
    var newest = 0.0
    return (0..<seconds * 50).map { number in
      let sent = Double(number) * 20
      guard let delay = delay(&self, sent) else { return (sent, nil) }
      let arrived = reorders ? sent + delay : max(sent + delay, newest)
      newest = max(newest, arrived)
      return (sent, arrived)
    }
  }

  mutating func quiet() -> Packets {
    let (base, scale, whole) = (between(10, 60), between(0.3, 4), unit() < 0.5)
    return packets(seconds: 60, reorders: false) { network, _ in
      let delay = base + min(24, network.exponential(scale))
      return whole ? delay.rounded() : delay
    }
  }

  mutating func drive() -> Packets {
    let (base, scale, every) = (between(10, 30), between(2, 6), between(4_000, 40_000))
    let (height, outage) = (between(60, 300), unit() < 0.3 ? between(500, 2_500) : 0)
    var (wander, heldUntil, next) = (0.0, -1.0, exponential(every))
    return packets(seconds: 90, reorders: unit() < 0.5) { network, sent in
      wander = wander * 0.99 + network.normal() * scale * 0.1
      if sent >= next {
        heldUntil = sent + (outage > 0 && network.unit() < 0.1 ? outage : height * network.between(0.3, 1))
        next = sent + network.exponential(every)
      }
      let delay = base + max(0, wander + network.exponential(scale))
      return max(delay, heldUntil + base - sent).rounded()
    }
  }

  mutating func cellular() -> Packets {
    let (base, spread, pull) = (between(25, 60), between(10, 60), between(0.95, 0.995))
    let (grid, every, height) = (between(2, 20), between(5_000, 30_000), between(100, 600))
    var (queue, heldUntil, next) = (0.0, -1.0, exponential(every))
    let loss = unit() < 0.5 ? 0.005 : 0
    return packets(seconds: 120, reorders: false) { network, sent in
      queue = queue * pull + network.normal() * spread * (1 - pull * pull).squareRoot()
      if sent >= next {
        heldUntil = sent + height * network.between(0.3, 1)
        next = sent + network.exponential(every)
      }
      let arrived = max(sent + base + max(0, queue) + network.exponential(2), heldUntil + base)
      return network.unit() < loss ? nil : (arrived / grid).rounded(.up) * grid - sent
    }
  }

  mutating func carrier() -> Packets {
    let (base, scale, hiccups, swaps) = (between(5, 40), between(0.2, 2), between(0, 0.002), between(0, 0.003))
    let (batches, loss) = (unit() < 0.25, unit() < 0.5 ? 0.001 : 0)
    return packets(seconds: 120, reorders: true) { network, sent in
      var delay = base + network.exponential(scale)
      if batches, Int(sent / 20) % 2 == 0 { delay += 20 }
      if network.unit() < hiccups { delay += network.between(15, 60) }
      if network.unit() < swaps { delay += 21 }
      return network.unit() < loss ? nil : delay
    }
  }

  mutating func lossy(meanBurst: Double) -> Packets {
    let (base, scale, loss) = (between(30, 60), between(2, 8), meanBurst > 1 ? between(0.01, 0.1) : 0.03)
    var lost = false
    return packets(seconds: 180, reorders: true) { network, _ in
      lost = network.unit() < (lost ? 1 - 1 / meanBurst : loss / meanBurst / (1 - loss))
      if meanBurst == 1 { lost = network.unit() < loss }
      return lost ? nil : base + network.exponential(scale)
    }
  }

  mutating func spikes() -> Packets {
    let (base, scale, every, height) = (between(30, 60), between(3, 8), between(2_000, 10_000), between(80, 250))
    var (start, next) = (-1e9, exponential(every))
    return packets(seconds: 180, reorders: true) { network, sent in
      if sent >= next { (start, next) = (sent, sent + network.exponential(every)) }
      // A spike: packets after its start drain at twice the rate they were sent.
      var delay = base + network.exponential(scale) + max(0, height - (sent - start))
      if network.unit() < 0.02 { delay += network.between(20, 50) }
      return network.unit() < 0.03 ? nil : delay
    }
  }

  mutating func steps() -> Packets {
    let (base, scale, offset) = (between(30, 60), between(2, 7), between(0, 10_000))
    return packets(seconds: 120, reorders: true) { network, sent in
      let isHigh = Int((sent + offset) / 10_000) % 2 == 1
      return base + abs(network.normal()) * scale + (isHigh ? 180 : 0)
    }
  }

  mutating func stall() -> Packets {
    let (base, scale, every) = (between(20, 50), between(1, 5), between(10_000, 30_000))
    return packets(seconds: 90, reorders: false) { network, sent in
      let within = (sent + every / 2).truncatingRemainder(dividingBy: every)
      return base + network.exponential(scale) + (within < 3_000 ? 3_000 - within : 0)
    }
  }

  mutating func skew(_ rate: Double) -> Packets {
    // A fast sender's packets come ever earlier.
    let (base, scale) = (between(20, 60) + max(0, -rate * 300_000), between(0.2, 3))
    return packets(seconds: 300, reorders: true) { network, sent in base + sent * rate + network.exponential(scale) }
  }
}
