// Groups within a world: the ranks as a grid, with sums along its rows and its columns.
//
//   nexar run -n 6 ./split
//
//             column 0  1  2
//      row 0:       0   1   2        the ranks of the world
//      row 1:       3   4   5
#include <cstdio>

#include "nexar/node.h"

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  constexpr int kColumns = 3;
  const int row = node.rank() / kColumns;
  const int column = node.rank() % kColumns;

  // Ranks that give the same color become a group, ordered by the key. A rank that gives no color is in none, and gets nothing.
  const nexar::Group in_row = world.split(row, column).value().value();
  const nexar::Group in_column = world.split(column, row).value().value();

  // A group is as good as the world: it has ranks of its own, and everything works on it. Groups do not disturb each other.
  int along_row = node.rank();
  in_row.all_reduce(&along_row, &along_row, 1, nexar::DataType::kI32, nexar::ReduceOp::kSum).value();
  int along_column = node.rank();
  in_column.all_reduce(&along_column, &along_column, 1, nexar::DataType::kI32, nexar::ReduceOp::kSum).value();
  std::printf("rank %d is rank %d of row %d (sum %d) and rank %d of column %d (sum %d)\n", node.rank(), in_row.rank(), row, along_row,
              in_column.rank(), column, along_column);
  node.close().value();
}
