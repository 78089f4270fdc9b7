/// The named limits of this module.
public enum Limits {
  /// Sockets of the app port in all, and from one address; a connection beyond this is closed before it is served.
  public static let connections = 20_000
  public static let connectionsPerAddress = 200
  /// Sockets of the admin port: in all, from one address (without streams, which have their own slots), and the part reserved for
  /// connections whose last request had a valid token. If there is no room for another, the idlest is closed.
  public static let adminConnections = 64
  static let adminConnectionsPerAddress = 16
  static let adminReserved = 16
  /// Body of `POST /v1/calls/<id>/reject`.
  public static let rejectBytes = 4_096
  /// Body of an import of contacts at the admin port, by a client that may make one.
  public static let importBytes = 64 << 20
  /// Other nodes whose pages may connect here, and that our pages may connect to: each page's header contains their addresses.
  static let nodeOrigins = 64
  /// Commands from control that wait for the app thread. A device whose command does not fit loses its session.
  static let commands = 65_536
  /// Events that control's inbox refused and that are offered again; beyond this, the sockets that cause them are closed.
  static let waitingEvents = 8_192
  static let retryMilliseconds: Int64 = 5
}
