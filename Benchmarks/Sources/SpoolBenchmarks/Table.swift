import Foundation

/// Rows of text under headings, printed as Markdown. The columns are aligned on a terminal, and the text can be pasted
/// into `docs/` unchanged.
///
/// The first column is left-aligned, and the others right-aligned. Each heading has at least two letters.
struct Table: CustomStringConvertible, Sendable {
    var headings: [String]
    var rows: [[String]] = []
    /// A sentence to print below the table.
    var note: String?

    init(_ headings: String..., note: String? = nil) {
        self.headings = headings
        self.note = note
    }

    mutating func add(_ cells: String...) {
        rows.append(cells)
    }

    var description: String {
        let widths = headings.indices.map { column in
            ([headings] + rows).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            let padded = cells.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - cells[column].count)
                return column == 0 ? cells[column] + padding : padding + cells[column]
            }
            return "| " + padded.joined(separator: " | ") + " |"
        }
        let rule = widths.indices.map { column in
            column == 0
                ? String(repeating: "-", count: widths[column])
                : String(repeating: "-", count: widths[column] - 1) + ":"
        }
        var text = ([line(headings), "| " + rule.joined(separator: " | ") + " |"] + rows.map(line))
            .joined(separator: "\n")
        if let note {
            text += "\n\n\(note)"
        }
        return text
    }
}

/// Returns a rounded number with commas between groups of three digits, such as `16,226,484`. A number below 10 has one
/// decimal place.
func figure(_ value: Double) -> String {
    guard value.isFinite else { return "–" }
    if value < 10 { return "\((value * 10).rounded() / 10)" }
    var digits = String(Int(value.rounded()))
    var groups: [Substring] = []
    while digits.count > 3 {
        groups.insert(digits.suffix(3), at: 0)
        digits.removeLast(3)
    }
    groups.insert(digits[...], at: 0)
    return groups.joined(separator: ",")
}

/// Returns a number with two decimal places.
func decimal(_ value: Double) -> String {
    value.isFinite ? String(format: "%.2f", value) : "–"
}
