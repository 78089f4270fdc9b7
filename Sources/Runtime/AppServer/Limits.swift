/// The named limits and times of this module.
public enum Limits {
  /// Sockets of the app port in all, and from one address; a connection beyond is closed before it is served.
  public static let connections = 20_000
  public static let connectionsPerAddress = 200
  /// Sockets of the admin port.
  public static let adminConnections = 64
  /// What is queued toward one WebSocket; beyond it is a slow consumer and closed with 4008.
  public static let queueBytes = 1_048_576
  public static let queueFrames = 1_024
  /// A socket that is being closed is cut after this many seconds, whether its peer took what was queued or not.
  public static let closeSeconds: Int32 = 5
  /// Headers of one HTTP request, and how many requests may be read at once.
  public static let headerBytes: UInt16 = 8_192
  public static let headersAtOnce: UInt16 = 1_024
  /// Seconds in which a TLS handshake and the headers of a request must come, and for which an idle HTTP connection is kept.
  public static let requestSeconds: UInt32 = 10
  public static let keepAliveSeconds: Int32 = 5
  /// Seconds in which an HTTP request must be answered.
  public static let answerSeconds: Int32 = 30
  /// Body of `POST /v1/calls/<id>/reject`.
  public static let rejectBytes = 4_096
  /// Body of an HTTP request.
  public static let bodyBytes = 65_536
  /// Bytes written to an HTTP connection at a time.
  public static let writeBytes = 16_384
  /// Fields of a request's query.
  public static let queryFields = 16
  /// Text of a request header that is read (Origin, Host, Authorization, path).
  public static let headerTextBytes = 4_096
  /// Commands from control that wait for the app thread. A device whose command does not fit loses its session.
  public static let commands = 65_536
  /// Events that control's inbox refused and that are offered again; beyond, the sockets that cause them are closed.
  public static let waitingEvents = 8_192
  public static let retryMilliseconds: Int64 = 5
  /// How long a stop waits for its sockets to close.
  public static let stopMilliseconds: Int64 = 1_000
}
