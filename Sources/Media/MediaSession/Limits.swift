// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Frames of 20 ms that a tap holds: 670 bytes each.
  static let tapFrames = 4...1_024
  /// A recorder reads ten times a second, from a thread that disks hold up: 5 s of both sides.
  static let recorderFrames = 512
  /// A stream is read every few milliseconds: what its thread may be late is 640 ms.
  static let streamFrames = 32
  /// Devices that ring for one call at a time.
  static let appLegs = 16
  /// The largest packet we build; what is larger is dropped and counted.
  static let packetBytes = 1_500
  /// Packets of one peer that are worked on in 20 ms: ten times what 10 ms packets, a second stream and digits come to. What a
  /// network held back for seconds arrives at once: 3 s of 10 ms packets fit into the burst.
  static let packetsPerTick = 20
  static let packetBurst = 400
  /// One message of a client's DTLS handshake: a certificate chain has no use here.
  static let handshakeMessageBytes = 16_384
  /// DTLS datagrams of one leg that are handed on in a second, and at once: a handshake has about ten, with its repetitions thirty.
  static let handshakeDatagramsPerSecond = 50
  static let handshakeDatagramBurst = 100
  /// Kept first words (docs/reference/protocol.md, First words): 1.5 s.
  static let keptFrames = 75
  /// Silence of an authenticated app leg before it counts as lost (docs/reference/protocol.md, Reconnect and handover).
  static let appSilence: Duration = .seconds(15)
  /// Absence of trunk RTP before it counts as silent.
  static let trunkSilence: Duration = .seconds(20)
  /// Ticks are this far apart only when the process, or the machine, was stopped.
  static let interruption: Duration = .seconds(3)
  /// ICE generations of one leg whose names are kept.
  static let generations = 4
  /// Without `media.active` this long after the connect, play-out is taken as running.
  static let playoutAssumed: Duration = .seconds(10)
  /// Source learning: packets that must agree, and the window they must fall in.
  static let agreeingPackets = 5
  static let learningWindow: Duration = .seconds(1)
  /// So long a learnt source is silent before another port of its address may be learnt.
  static let sourceSilence: Duration = .seconds(1)
  /// So long the nominated address is silent before an app is followed whose packets come from another one and whose checks do not: as long as the
  /// slowest browser takes to nominate again.
  static let uncheckedSilence: Duration = .milliseconds(2_500)
  /// What an app's reports say of a direction in which nothing arrives: packets sent in vain, and for how long.
  static let oneWayPackets = 25
  static let oneWayTime: Duration = .seconds(3)
  /// Another codec that needs another decoder is followed once in this time: making one allocates.
  static let codecChange: Duration = .milliseconds(100)
  /// Packets of unknown payload types in a row, each within a second of the one before, after which the stream is reported as dropped.
  static let unknownPackets = 50
  /// Sources of telephone-events of one leg at a time.
  static let eventSources = 4
  /// Ends of one press on their way to a trunk, and the least that a press lasts there, in ticks.
  static let eventEnds = 3
  static let shortestEventTicks: UInt64 = 2
  /// Tones of a trunk that agreed on telephone-event and sent none, before the log says so.
  static let unannouncedTones = 2
  /// Mean time between RTCP reports to a trunk (RFC 3550 §6.2), and between `quality` events.
  static let reportInterval: Duration = .seconds(5)
  /// Mean time between RTCP reports to an app, whose profile has no minimum of 5 s (RFC 4585 §3.4). libwebrtc takes no loss from the
  /// first report and smooths the next ones over 10 s: with 5 s between them an app sends no copies in the first ten seconds of a call.
  static let appReportInterval: Duration = .seconds(1)
  /// An event whose end packets were all lost ends this long after its last update.
  static let eventTimeout: Duration = .milliseconds(250)
  /// A relayed app that is quiet for this long is filled in with silence, so that the trunk's stream continues.
  static let relaySilence: Duration = .milliseconds(200)
  /// Ticks of 20 ms that a relayed call lets pass between two; shorter than `relaySilence`, which is looked for on ticks.
  static let skippedTicks = 4
  /// A pause is described again after this many frames (400 ms, as libopus's own DTX does).
  static let noiseRefreshFrames = 20
  /// Comfort noise in dBov: what a listener takes for a live line, and the most we would make.
  static let quietestNoise = -73.0
  static let loudestNoise = -50.0
  /// What a jitter buffer may hold at most, for reports: 64 packets of 20 ms.
  static let bufferMaximumMilliseconds = 1_280.0
  /// So long the first packet of a stream waits for its tick at least, and so many are heard before ticks come earlier: until then
  /// the jitter is unknown.
  static let startMarginMilliseconds = 5
  static let startPackets = 50
  /// Beyond what packets need this much must be left when a tick's worth of delay is taken out.
  static let cutMarginMilliseconds = 6
  /// Audio for held trunks: 40 ms, so that both ends can be faded, to 2 minutes at 8 kHz.
  static let clipSamples = 320...960_000
  /// Calls of a group, and how many others one of them hears at a time.
  static let groupMembers = 5
  static let groupTalkers = 3
  /// How much louder, as a ratio of powers, a talker that is left out must be than the quietest talker that is heard: 6 dB.
  static let louderTalker = 4.0
  /// Frames of a member that wait for the others, and how long one may: a tick, and what ticks may move to and fro.
  static let groupFrames = 4
  static let groupDelay: Duration = .milliseconds(25)
  /// Trunk packet times we can send.
  static let packetTimeMilliseconds = 10...60
}

/// Numbers that follow from the 20 ms tick.
enum Frame {
  /// The most there are in one: of wideband.
  static let capacity = 320
  static let milliseconds = 20
  static let duration: Duration = .milliseconds(20)
}
