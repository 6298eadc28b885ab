//! The map of a report: a rectangle for each file, in those of its folders. Its area stands for the number of lines
//! with code, its colour for the share of them that ran.

use super::figures::{Share, Shown};
use super::tree::Tree;

/// The largest number of rectangles. If there are more files, the map shows folders.
const LARGEST: usize = 400;

/// The width of the map divided by its height, in a wide window.
const ASPECT: f64 = 4.0;

/// The height of the name of a folder, and the smallest height and width of a folder with a name.
const NAME: [f64; 3] = [6.0, 18.0, 24.0];

/// A file or folder of the map. Numbers are in percent of the map.
pub(super) struct Tile<'a> {
    pub(super) path: String,
    /// The path from the folder around it.
    pub(super) name: String,
    /// The page of a file.
    pub(super) page: Option<&'a str>,
    /// True of a folder around other rectangles.
    pub(super) is_frame: bool,
    pub(super) share: Share,
    area: Area,
}

impl Tile<'_> {
    /// The place as a style has it.
    pub(super) fn style(&self) -> String {
        let Area {
            left,
            top,
            width,
            height,
        } = self.area;
        let [left, width] = [left, width].map(|length| length / ASPECT);
        format!("left:{left:.2}%;top:{top:.2}%;width:{width:.2}%;height:{height:.2}%")
    }
}

/// A rectangle. The map is 100 high.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// A file, or a folder with what is in it.
struct Node<'a, 'b> {
    name: String,
    page: Option<&'a str>,
    folder: Option<&'b Tree<'a>>,
    shown: &'b Shown,
}

/// The rectangles of a tree of files, those of folders before what is in them.
pub(super) fn tiles<'a>(tree: &Tree<'a>) -> Vec<Tile<'a>> {
    let depths = (1..=tree.depth()).rev();
    let mut fitting = depths.filter(|depth| tree.number_at(*depth) <= LARGEST);
    let depth = fitting.next().unwrap_or(1);
    let whole = Area {
        left: 0.0,
        top: 0.0,
        width: 100.0 * ASPECT,
        height: 100.0,
    };
    let mut tiles = Vec::new();
    add(tree, "", depth, whole, &mut tiles);
    tiles
}

/// Adds what is in `folder`, whose path is `path`, in `area`. `depth` folders are inside one another.
fn add<'a>(folder: &Tree<'a>, path: &str, depth: usize, area: Area, tiles: &mut Vec<Tile<'a>>) {
    let files = folder.files.iter().map(|(name, file)| Node {
        name: (*name).to_owned(),
        page: Some(&*file.source.page),
        folder: None,
        shown: &file.shown,
    });
    let folders = folder.directories.iter().map(|(name, tree)| {
        let (name, tree) = tree.without_only_folders(name);
        Node {
            name,
            page: None,
            folder: Some(tree),
            shown: &tree.shown,
        }
    });
    let size = |node: &Node<'_, '_>| node.shown.lines().total;
    let mut nodes: Vec<_> = files.chain(folders).filter(|node| size(node) > 0).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(size(node)));
    // Beyond that, a rectangle is too small to be seen.
    nodes.truncate(LARGEST);
    let sizes: Vec<_> = nodes.iter().map(|node| size(node) as f64).collect();
    for (node, area) in nodes.into_iter().zip(squarified(&sizes, area)) {
        let Some(share) = Share::new(node.shown.lines()) else {
            continue;
        };
        let path = format!("{path}{}", node.name);
        let inner = node.folder.filter(|_| depth > 1);
        tiles.push(Tile {
            path: path.clone(),
            name: node.name,
            page: node.page,
            is_frame: inner.is_some(),
            share,
            area,
        });
        if let Some(folder) = inner {
            add(folder, &path, depth - 1, area.below_name(), tiles);
        }
    }
}

impl Area {
    /// The part of a folder below its name.
    fn below_name(self) -> Self {
        let [name, height, width] = NAME;
        match self.height >= height && self.width >= width {
            true => Self {
                top: self.top + name,
                height: self.height - name,
                ..self
            },
            false => self,
        }
    }
}

/// Rectangles in `area` of these sizes, which go down, each nearly a square: the algorithm of Bruls, Huizing and van
/// Wijk (2000).
fn squarified(sizes: &[f64], mut area: Area) -> Vec<Area> {
    let mut left: f64 = sizes.iter().sum();
    let mut places = Vec::new();
    let mut rest = sizes;
    while !rest.is_empty() && left > 0.0 {
        let scale = area.width * area.height / left;
        let side = area.width.min(area.height);
        let worst = |row: &[f64]| {
            let sum: f64 = row.iter().sum::<f64>() * scale;
            let [first, last] = [row[0], row[row.len() - 1]].map(|size| size * scale);
            let square = side * side;
            (square * first / (sum * sum)).max(sum * sum / (square * last))
        };
        let mut number = 1;
        while number < rest.len() && worst(&rest[..=number]) <= worst(&rest[..number]) {
            number += 1;
        }
        let (row, others) = rest.split_at(number);
        let sum: f64 = row.iter().sum();
        let thickness = sum * scale / side;
        let mut along = 0.0;
        for size in row {
            let length = size * scale / thickness;
            places.push(match area.width < area.height {
                true => Area {
                    left: area.left + along,
                    top: area.top,
                    width: length,
                    height: thickness,
                },
                false => Area {
                    left: area.left,
                    top: area.top + along,
                    width: thickness,
                    height: length,
                },
            });
            along += length;
        }
        match area.width < area.height {
            true => {
                area.top += thickness;
                area.height -= thickness;
            }
            false => {
                area.left += thickness;
                area.width -= thickness;
            }
        }
        left -= sum;
        rest = others;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_have_the_areas_of_their_sizes_and_fill_the_map() {
        // The example of the paper: 6 by 4.
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let whole = Area {
            left: 0.0,
            top: 0.0,
            width: 6.0,
            height: 4.0,
        };
        let areas = squarified(&sizes, whole);
        for (area, size) in areas.iter().zip(sizes) {
            assert!((area.width * area.height - size).abs() < 1e-9, "{area:?}");
        }
        let first = areas[0];
        assert_eq!((first.width, first.height), (3.0, 2.0));
        let right = areas.iter().map(|area| area.left + area.width);
        assert!((right.fold(0.0, f64::max) - 6.0).abs() < 1e-9);
        assert!(squarified(&[], whole).is_empty());
    }
}
