import AppSessions
public import Devices
import Foundation
import GRDB
import PushPolicy

/// Devices and their registrations in a SQLite file, in columns that an operator can read with `sqlite3`.
public final class SQLiteDevices: LocalDeviceStore {
  private let file: SQLiteFile

  public init(_ file: SQLiteFile) { self.file = file }

  static func migrate(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE device (
          user TEXT NOT NULL, device TEXT NOT NULL, platform TEXT, model TEXT, os TEXT, sdk TEXT, accounts TEXT NOT NULL,
          rings INTEGER NOT NULL, dnd INTEGER NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL, revoked INTEGER,
          PRIMARY KEY (user, device)) WITHOUT ROWID;
        CREATE TABLE push (
          user TEXT NOT NULL, device TEXT NOT NULL, service TEXT NOT NULL, topic TEXT NOT NULL, environment TEXT NOT NULL,
          token TEXT NOT NULL, registered INTEGER NOT NULL, usable INTEGER NOT NULL,
          PRIMARY KEY (user, device, service, topic)) WITHOUT ROWID;
        """)
  }

  public func apply(_ changes: [DeviceChange]) throws {
    try file.write("devices") { database in
      for change in changes {
        switch change {
        case .stored(let device):
          try Self.remove(device.key, database)
          try Self.insert(device, database)
        case .removed(let key): try Self.remove(key, database)
        }
      }
    }
  }

  private static func remove(_ key: DeviceKey, _ database: Database) throws {
    for table in ["device", "push"] {
      try database.cachedStatement(sql: "DELETE FROM \(table) WHERE user = ? AND device = ?").execute(arguments: [
        key.user, key.device,
      ])
    }
  }

  private static func insert(_ device: Device, _ database: Database) throws {
    let accounts = String(decoding: try JSONEncoder().encode(device.accounts), as: UTF8.self)
    try database.cachedStatement(sql: "INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
      device.key.user, device.key.device, device.platform, device.model, device.os, device.sdk, accounts, device.rings,
      device.doNotDisturb, device.firstSeen, device.lastSeen, device.revokedAt,
    ])
    for binding in device.bindings {
      let target = binding.target
      // If a manual edit made two topics equal, the later row stays.
      try database.cachedStatement(sql: "INSERT OR REPLACE INTO push VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
        device.key.user, device.key.device, target.service.rawValue, target.topic, target.environment.rawValue,
        target.token.exposed,
        binding.registeredAt, binding.isUsable, target.sealKey.map { Data($0) },
      ])
    }
  }

  public func devices(of user: String) throws -> [Device] {
    try file.read("devices") { database in
      try Self.devices(database, matching: "user = ?", arguments: [user], order: "first_seen, device")
    }
  }

  public func page(after user: String?, users: Int) throws -> [Device] {
    try file.read("devices") { database in
      // The empty text precedes every id.
      let first = user ?? ""
      let last = try String.fetchOne(
        database, sql: "SELECT max(user) FROM (SELECT DISTINCT user FROM device WHERE user > ? ORDER BY user LIMIT ?)",
        arguments: [first, users])
      guard let last else { return [] }
      return try Self.devices(
        database, matching: "user > ? AND user <= ?", arguments: [first, last], order: "user, first_seen, device")
    }
  }

  /// The devices of the users that `condition` selects, which may use the column `user` alone.
  private static func devices(
    _ database: Database, matching condition: String, arguments: StatementArguments, order: String
  ) throws -> [Device] {
    var bindings: [DeviceKey: [PushBinding]] = [:]
    let pushes = try database.cachedStatement(sql: "SELECT * FROM push WHERE \(condition) ORDER BY registered")
    for row in try Row.fetchAll(pushes, arguments: arguments) {
      // A service unknown to this version must not prevent the start.
      guard let service = PushService(rawValue: row["service"]),
        let environment = PushTarget.Environment(rawValue: row["environment"])
      else { continue }
      let target = PushTarget(
        service, token: row["token"], environment: environment, topic: row["topic"],
        sealKey: (row["seal_key"] as Data?).map { [UInt8]($0) })
      bindings[DeviceKey(user: row["user"], device: row["device"]), default: []].append(
        PushBinding(target, registeredAt: row["registered"], isUsable: row["usable"]))
    }
    let devices = try database.cachedStatement(sql: "SELECT * FROM device WHERE \(condition) ORDER BY \(order)")
    return try Row.fetchAll(devices, arguments: arguments).map { row in
      var device = Device(key: DeviceKey(user: row["user"], device: row["device"]), at: row["first_seen"])
      (device.platform, device.model, device.os, device.sdk) = (row["platform"], row["model"], row["os"], row["sdk"])
      let accounts: String = row["accounts"]
      device.accounts = (try? JSONDecoder().decode([String].self, from: Data(accounts.utf8))) ?? device.accounts
      (device.rings, device.doNotDisturb, device.lastSeen) = (row["rings"], row["dnd"], row["last_seen"])
      device.revokedAt = row["revoked"]
      device.bindings = bindings[device.key] ?? []
      return device
    }
  }
}
