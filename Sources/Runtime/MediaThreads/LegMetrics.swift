import TrunklineMediaSession
import TrunklinePlatform

/// How well each leg's stream arrived, once per leg, call and 5 s: the figures of RFC 3611 and G.107.
struct LegMetrics: Sendable {
  private struct Figures: Sendable {
    let score = Histogram(bounds: [1.5, 2, 2.5, 3, 3.3, 3.6, 3.8, 4, 4.1, 4.2, 4.3, 4.4])
    let roundTrip = Histogram(bounds: [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2])
    let burstDensity = Histogram(bounds: [0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1])
    let level = Histogram(bounds: [-60, -50, -45, -40, -35, -30, -26, -22, -18, -14, -10])
  }
  private let trunk = Figures()
  private let app = Figures()

  func record(_ statistics: MediaStatistics) {
    Self.record(statistics.fromTrunk, in: trunk)
    Self.record(statistics.fromApp, in: app)
  }

  private static func record(_ stream: StreamStatistics, in figures: Figures) {
    guard stream.packets > 0 else { return }
    if let score = stream.meanOpinionScore { figures.score.record(score) }
    if let milliseconds = stream.roundTripMilliseconds { figures.roundTrip.record(milliseconds / 1_000) }
    if let level = stream.speechLevel { figures.level.record(level) }
    figures.burstDensity.record(stream.burstDensity)
  }

  var families: [MetricFamily] {
    [
      family("trunkline_media_opinion_score", help: "MOS of what each leg sent, by G.107.") { $0.score },
      family("trunkline_media_round_trip_seconds", help: "Round trip to each leg, by RTCP.") { $0.roundTrip },
      family("trunkline_media_burst_density", help: "Part of packets lost or late inside bursts of loss (RFC 3611).") {
        $0.burstDensity
      },
      family("trunkline_media_speech_level_dbov", help: "Level of each leg's speech in dBov.") { $0.level },
    ]
  }

  private func family(_ name: String, help: String, _ pick: @escaping @Sendable (Figures) -> Histogram) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .histogram, labelNames: ["leg"]) { [trunk, app] in
      [MetricSample(["trunk"], .histogram(pick(trunk).snapshot)), MetricSample(["app"], .histogram(pick(app).snapshot))]
    }
  }
}
