// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Frames of 20 ms that a tap holds: 670 bytes each.
  static let tapFrames = 4...1_024
  /// A recorder reads ten times a second, from a thread that may wait for a disk: 5 s of both directions.
  static let recorderFrames = 512
  /// A stream is read every few milliseconds: its thread may be 640 ms late.
  static let streamFrames = 32
  /// Devices that ring for one call at a time.
  static let appLegs = 16
  /// The largest packet that we build; a larger one is dropped and counted.
  static let packetBytes = 1_500
  /// Packets of one peer processed in 20 ms: ten times the rate of 10 ms packets, a second stream and digits. Packets that a
  /// network held back for seconds arrive at once: 3 s of 10 ms packets fit into the burst.
  static let packetsPerTick = 20
  static let packetBurst = 400
  /// One message of a client's DTLS handshake, which needs no certificate chain.
  static let handshakeMessageBytes = 16_384
  /// DTLS datagrams of one leg that are passed on per second, and at once: a handshake has about ten, with its retransmissions
  /// thirty.
  static let handshakeDatagramsPerSecond = 50
  static let handshakeDatagramBurst = 100
  /// Kept first words (docs/reference/protocol.md, First words): 1.5 s.
  static let keptFrames = 75
  /// Silence of an authenticated app leg before it counts as lost (docs/reference/protocol.md, Reconnect and handover).
  static let appSilence: Duration = .seconds(15)
  /// Absence of trunk RTP before it counts as silent.
  static let trunkSilence: Duration = .seconds(20)
  /// A longer time between two ticks means that the process, or the machine, was stopped.
  static let interruption: Duration = .seconds(3)
  /// ICE generations of one leg whose ufrags are kept.
  static let generations = 4
  /// Without `media.active` this long after the connect, play-out is assumed to run.
  static let playoutAssumed: Duration = .seconds(10)
  /// Source learning: packets that must agree, and the window they must fall in.
  static let agreeingPackets = 5
  static let learningWindow: Duration = .seconds(1)
  /// Silence of a learnt source after which another port of its address may be learnt.
  static let sourceSilence: Duration = .seconds(1)
  /// Silence of the nominated address after which an app is followed to an address that sends packets but no checks: as long as
  /// the slowest browser needs to nominate again.
  static let uncheckedSilence: Duration = .milliseconds(2_500)
  /// A direction is reported as one-way if the app's reports show this many packets sent, for this time, and none received.
  static let oneWayPackets = 25
  static let oneWayTime: Duration = .seconds(3)
  /// Another codec that needs another decoder is followed once in this time: creating a decoder allocates.
  static let codecChange: Duration = .milliseconds(100)
  /// Consecutive packets of unknown payload types, each within a second of the previous one, after which the stream is reported
  /// as dropped.
  static let unknownPackets = 50
  /// Sources of telephone-events of one leg at a time.
  static let eventSources = 4
  /// Ends of one press sent to a trunk, and the minimum length of a press there, in ticks.
  static let eventEnds = 3
  static let shortestEventTicks: UInt64 = 2
  /// Tones of a trunk that agreed on telephone-event and sent none, after which the log reports it.
  static let unannouncedTones = 2
  /// Mean time between RTCP reports to a trunk (RFC 3550 §6.2), and between `quality` events.
  static let reportInterval: Duration = .seconds(5)
  /// Mean time between RTCP reports to an app, whose profile has no minimum of 5 s (RFC 4585 §3.4). libwebrtc ignores the loss of
  /// the first report and smooths the next ones over 10 s: with 5 s between them an app sends no copies in the first ten seconds
  /// of a call.
  static let appReportInterval: Duration = .seconds(1)
  /// An event whose end packets were all lost ends this long after its last update.
  static let eventTimeout: Duration = .milliseconds(250)
  /// If a relayed app is silent for this long, silence is sent for it, so that the trunk's stream continues.
  static let relaySilence: Duration = .milliseconds(200)
  /// Ticks of 20 ms that a relayed call skips between two; shorter than `relaySilence`, which is checked on ticks.
  static let skippedTicks = 4
  /// A pause is described again after this many frames (400 ms, as libopus's own DTX does).
  static let noiseRefreshFrames = 20
  /// Comfort noise in dBov: the level at which a line sounds live, and the loudest that we generate.
  static let quietestNoise = -73.0
  static let loudestNoise = -50.0
  /// The most that a jitter buffer may hold, for reports: 64 packets of 20 ms.
  static let bufferMaximumMilliseconds = 1_280.0
  /// The least time that the first packet of a stream waits for its tick, and the ticks with audio before later ones may come
  /// earlier: until then the spread of packets is unknown.
  static let startMarginMilliseconds = 5
  static let startPackets = 50
  /// A tick's worth of delay is only removed if this much more than packets need is left.
  static let cutMarginMilliseconds = 6
  /// Audio for held trunks: 40 ms, so that both ends can be faded, to 2 minutes at 8 kHz.
  static let clipSamples = 320...960_000
  /// Calls of a group, and how many others one of them hears at a time.
  static let groupMembers = 5
  static let groupTalkers = 3
  /// How much louder, as a ratio of powers, a left-out talker must be than the quietest heard one: 6 dB.
  static let louderTalker = 4.0
  /// Frames of a member that wait for the others, and how long one may wait: a tick, and what ticks move by within a word. In a
  /// pause a frame less is not heard.
  static let groupFrames = 4
  static let groupDelay: Duration = .milliseconds(50)
  static let groupPauseDelay: Duration = .milliseconds(30)
  /// How much quieter a pause is than what the member said just before, as a ratio of powers: 20 dB; and at full scale 1, −60 dB.
  static let groupPause = 0.01
  static let groupSilence = 1e-6
  /// Packet times that we can send to a trunk.
  static let packetTimeMilliseconds = 10...60
}

/// Numbers that follow from the 20 ms tick.
enum Frame {
  /// Samples of a wideband frame, the largest.
  static let capacity = 320
  static let milliseconds = 20
  static let duration: Duration = .milliseconds(20)
}
