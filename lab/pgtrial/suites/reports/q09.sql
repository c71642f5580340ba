-- What do the suppliers of each nation earn with parts of copper, by year?
select nation, year, sum(profit) as profit
from (
    select n.nation,
           extract(year from p.purchased_on) as year,
           l.price * (1 - l.discount) - o.cost * l.quantity as profit
    from parts t
    join lines l on l.part_id = t.part_id
    join offers o on o.part_id = l.part_id and o.supplier_id = l.supplier_id
    join suppliers s on s.supplier_id = l.supplier_id
    join nations n on n.nation_id = s.nation_id
    join purchases p on p.purchase_id = l.purchase_id
    where t.part like '%copper%'
) as earned
group by nation, year
order by nation, year desc;
