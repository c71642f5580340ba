-- Who offers the middle-sized parts of one class at the lowest cost that a supplier of a region asks for?
select s.balance, s.supplier, n.nation, p.part_id, p.maker, s.address, s.phone, o.cost
from parts p
join offers o on o.part_id = p.part_id
join suppliers s on s.supplier_id = o.supplier_id
join nations n on n.nation_id = s.nation_id
join regions r on r.region_id = n.region_id
where p.size between 12 and 18
  and p.kind like '%/eco'
  and r.region = 'Delta'
  and o.cost = (
      select min(cheapest.cost)
      from offers cheapest
      join suppliers on suppliers.supplier_id = cheapest.supplier_id
      join nations on nations.nation_id = suppliers.nation_id
      join regions on regions.region_id = nations.region_id
      where cheapest.part_id = p.part_id
        and regions.region = 'Delta'
  )
order by s.balance desc, p.part_id, s.supplier_id
limit 100;
