import TrunklinePlatform

/// What streams count.
final class StreamMetrics: Sendable {
  enum End: String, Sendable, CaseIterable {
    /// The call was over; the peer closed; the connection was lost; there never was one.
    case call, peer, lost, refused
  }
  let open = Gauge()
  let streams = LabelledCounters<End>()
  let faults = LabelledCounters<StreamMessages.Fault>()
  let unread = Counter()
  let tooFast = Counter()
  let marks = Counter()

  var families: [MetricFamily] {
    [
      .gauge("trunkline_streams", help: "Media streams that are open.", open),
      .counters("trunkline_streams_total", help: "Media streams that have ended, by cause.", label: "end", streams),
      .counters(
        "trunkline_stream_faults_total", help: "Messages of stream peers that were ignored, by fault.", label: "fault", faults),
      .counter("trunkline_stream_unread_frames_total", help: "Frames of 20 ms that peers did not read in time.", unread),
      .counter(
        "trunkline_stream_surplus_frames_total", help: "Frames of 20 ms dropped as too many waited to be played.", tooFast),
      .counter("trunkline_stream_surplus_marks_total", help: "Marks dropped as too many waited.", marks),
    ]
  }
}
