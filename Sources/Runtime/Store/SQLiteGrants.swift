public import CallModel
import Foundation
import GRDB
import JSONWebToken

/// Where grants of login tokens are kept. Blocks; used by one thread at a time.
public protocol GrantStore: AnyObject, Sendable {
  func grants() throws -> [UserGrants.Entry]
  /// In order; all or none.
  func apply(_ changes: [UserGrants.Change]) throws
}

/// Grants of login tokens in the SQLite file of the devices, as the claim writes them.
public final class SQLiteGrants: GrantStore {
  private let file: SQLiteFile

  public init(_ file: SQLiteFile) { self.file = file }

  static func migrate(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE token_grant (
          user TEXT PRIMARY KEY NOT NULL, claim TEXT NOT NULL, issued INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID
        """)
  }

  public func apply(_ changes: [UserGrants.Change]) throws {
    try file.write("grants") { database in
      for change in changes {
        switch change {
        case .stored(let entry):
          let claim = String(decoding: try JSONEncoder().encode(entry.grant), as: UTF8.self)
          try database.cachedStatement(sql: "INSERT OR REPLACE INTO token_grant VALUES (?, ?, ?, ?)").execute(arguments: [
            entry.user, claim, entry.grant.issuedAt, entry.seen,
          ])
        case .removed(let user):
          try database.cachedStatement(sql: "DELETE FROM token_grant WHERE user = ?").execute(arguments: [user])
        }
      }
    }
  }

  public func grants() throws -> [UserGrants.Entry] {
    try file.read("grants") { database in
      try Row.fetchAll(database, sql: "SELECT * FROM token_grant").compactMap { row in
        let claim: String = row["claim"]
        // A claim of a later version is no reason to start without the others: its user logs in again.
        guard var grant = try? JSONDecoder().decode(TokenGrant.self, from: Data(claim.utf8)) else { return nil }
        grant.issuedAt = row["issued"]
        return UserGrants.Entry(user: row["user"], grant: grant, seen: row["seen"])
      }
    }
  }
}
