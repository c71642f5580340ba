-- What do small lines bring in a year, less than a fifth of the mean of their part?
select round(sum(l.price) / 7, 2) as yearly, count(*) as lines
from lines l
join parts p on p.part_id = l.part_id
where p.brand = 'D2'
  and p.packing in ('large box', 'medium crate', 'small can')
  and l.quantity < (
      select 0.2 * avg(all_lines.quantity)
      from lines all_lines
      where all_lines.part_id = p.part_id
  );
