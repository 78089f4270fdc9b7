import CallModel
import TrunklinePlatform

final class RecorderMetrics: Sendable {
  let running = Gauge()
  let closed = LabelledCounters<RecordingReport.End>()
  let bytes = Counter()
  let dropped = Counter()
  let free = Gauge()
  let leastFree = Gauge()

  var families: [MetricFamily] {
    [
      .gauge("trunkline_recordings", help: "Recordings that are being written.", running),
      .counters("trunkline_recordings_total", help: "Recordings that were closed, by cause.", label: "end", closed),
      .counter("trunkline_recording_bytes_total", help: "Octets of closed recordings.", bytes),
      .counter(
        "trunkline_recording_dropped_frames_total", help: "Frames of 20 ms that recordings lack: there is silence.", dropped),
      .gauge("trunkline_recording_free_bytes", help: "Free octets of the file system with the recordings.", free),
      .gauge(
        "trunkline_recording_minimum_free_bytes", help: "Octets that recordings leave free: recording.minimum_free_mib.",
        leastFree),
    ]
  }
}
