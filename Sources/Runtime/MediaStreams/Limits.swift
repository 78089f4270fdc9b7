import TrunklineBytes

/// The named limits of this module, with every bound on a queue, table or message.
enum Limits {
  /// Streams at a time; one more is refused.
  static let streams = 500
  /// From the look-up of the peer's name to `start`.
  static let opening: Duration = .seconds(4)
  /// How often rings are read and filled while there is a stream: the longest wait of a frame beyond its tick.
  static let interval: Duration = .milliseconds(5)
  /// A message of the peer: a second of audio in Base64 is 21 KB.
  static let messageBytes = 1 << 20
  /// The answer to the opening handshake.
  static let handshakeBytes = 16_384
  static let readBytes = 65_536
  static let readsPerStep = 4
  /// Octets that wait for a peer that does not read: about 2 s; beyond that frames are dropped and counted.
  static let unsentBytes = 96_000
  /// The same including everything that is not audio (answers to pings, marks): beyond it the connection is closed.
  static let surelyUnreadBytes = 1 << 20
  /// A peer that reads nothing for so long, while data waits for it, counts as gone.
  static let unread: Duration = .seconds(15)
  /// Audio of the peer that waits to be played, in seconds. More is dropped and counted.
  static let queuedSeconds = 120
  /// Marks that wait for the audio before them.
  static let marks = 1_000
  static let markBytes = 256
  /// Frames that wait in the ring toward the media thread: `clear` cannot remove these.
  static let framesAhead = 2
  /// Frames that are gathered before a talkspurt is played: at first, and at most once audio has been late.
  static let heldFrames = 1...5
  /// Audio that resumes so soon after running dry was late; after so long without late audio, one frame less is held.
  static let lateWithin: Duration = .milliseconds(500)
  static let calm: Duration = .seconds(10)
  /// The largest backlog of a peer that talks in real time; a larger one means that it sends faster. One of so many frames may be
  /// left out of its silence.
  static let liveFrames = 25
  static let cutEvery = 5
  /// Frames that were still waiting at the arrival of each of so many pieces are surplus: half a second of pieces of 20 ms.
  static let sparePieces = 25
  /// Pieces of audio that may wait.
  static let queuedPieces = 20_000
  /// Questions and answers between the threads.
  static let commands = 4_096
}
