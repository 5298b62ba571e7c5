// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// A picture: its size and its pixels, in memory.
///
/// Stand-in for CoreGraphics' `CGImage`, as far as it takes to read the pixels. It draws nothing and knows no colour
/// spaces; the colours are those that a screen expects (sRGB, or BT.709 as it was decoded).
public final class CGImage: Sendable {
    /// Pixels in a row.
    public let width: Int
    /// Rows.
    public let height: Int
    /// Bytes from the beginning of a row to that of the next; at least ``width`` times 4.
    public let bytesPerRow: Int
    /// The pixels, the rows from the top.
    public let dataProvider: CGDataProvider?

    /// Bits of one colour of a pixel: 8.
    public var bitsPerComponent: Int { 8 }
    /// Bits of a pixel: 32.
    public var bitsPerPixel: Int { 32 }
    /// How the bytes of a pixel are to be taken: blue, green, red, and one that means nothing.
    public var bitmapInfo: CGBitmapInfo { [.byteOrder32Little, CGBitmapInfo(rawValue: 6)] }

    init(_ picture: Picture) {
        width = picture.width
        height = picture.height
        bytesPerRow = picture.bytesPerRow
        dataProvider = CGDataProvider(picture.data)
    }
}

/// Gives the bytes of a picture.
public final class CGDataProvider: Sendable {
    /// All of them.
    public let data: Data?

    init(_ data: Data) { self.data = data }
}

/// How the bytes of a pixel are to be taken, with CoreGraphics' numbers: the lowest five bits say where there is
/// transparency; 6 stands for none, in a first byte that is passed over.
public struct CGBitmapInfo: OptionSet, Sendable, Hashable {
    /// CoreGraphics' number.
    public let rawValue: UInt32
    /// What CoreGraphics' number stands for.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Pixels of 32 bits, the lowest byte first.
    public static let byteOrder32Little = CGBitmapInfo(rawValue: 2 << 12)
    /// The bits that say where there is transparency.
    public static let alphaInfoMask = CGBitmapInfo(rawValue: 0x1F)
}
